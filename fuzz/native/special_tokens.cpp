// The search for special tokens, with and without flags, agrees with a naive search at each offset. Where no
// token crosses an offset, both parts can be searched separately.
#include "input.hpp"

#include "text/special_tokens.hpp"
#include "text/word_characters.hpp"

namespace {

using Match = bpe::SpecialTokens::Match;

bpe::Char character_before(std::string_view text, size_t place) {
  size_t start = place - 1;
  while (start > 0 && bpe::continues_character(text[start]))
    --start;
  return bpe::read_char(bpe::bytes_of(text) + start, bpe::bytes_of(text) + place);
}
bpe::Char character_at(std::string_view text, size_t place) {
  return bpe::read_char(bpe::bytes_of(text) + place, bpe::bytes_of(text) + text.size());
}

std::vector<Match> naive_search(const std::vector<bpe::SpecialToken> &tokens, std::string_view text) {
  std::vector<Match> found;
  for (size_t place = 0, taken = 0; place < text.size();) {
    const bpe::SpecialToken *longest = nullptr;
    for (const bpe::SpecialToken &token : tokens)
      if (text.substr(place).starts_with(token.text) &&
          (!longest || token.text.size() > longest->text.size()))
        longest = &token;
    if (!longest) {
      ++place;
      continue;
    }
    size_t start = place, stop = place + longest->text.size();
    place = stop;
    if (longest->single_word &&
        ((start > 0 && bpe::is_word_character(character_before(text, start).code_point)) ||
         (stop < text.size() && bpe::is_word_character(character_at(text, stop).code_point))))
      continue;
    while (longest->lstrip && start > taken && bpe::is_space(character_before(text, start).code_point))
      start -= character_before(text, start).length;
    start = longest->lstrip ? std::max(start, taken) : start;
    while (longest->rstrip && stop < text.size() && bpe::is_space(character_at(text, stop).code_point))
      stop += character_at(text, stop).length;
    found.push_back({start, stop, longest->value});
    taken = stop;
  }
  return found;
}

std::vector<bpe::SpecialToken> read_tokens(fuzz::Input &input) {
  std::vector<bpe::SpecialToken> tokens;
  for (size_t count = input.below(12); count > 0; --count) {
    const uint8_t flags = input.byte();
    std::string text = fuzz::valid_text(input.bytes(1 + input.below(6)));
    if (flags / 8 % 8 == 0 && !text.empty()) // too long for the search of short texts
      for (const std::string part = text; text.size() < 140;)
        text += part;
    const bool is_known =
        std::any_of(tokens.begin(), tokens.end(), [&](const auto &token) { return token.text == text; });
    if (!text.empty() && !is_known)
      tokens.push_back({text, static_cast<uint32_t>(tokens.size()), flags % 2 != 0, flags / 2 % 2 != 0,
                        flags / 4 % 2 != 0});
  }
  return tokens;
}

bool same(const Match &a, const Match &b) {
  return a.start == b.start && a.stop == b.stop && a.value == b.value;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const std::vector<bpe::SpecialToken> given = read_tokens(input);
  const size_t place_number = input.below(65536);
  const bpe::SpecialTokens tokens(given);
  const fuzz::Exact text(fuzz::valid_text(input.repeated_rest(500)));
  const std::vector<Match> expected = naive_search(given, text.view());
  const auto search = [&](std::string_view part) {
    const fuzz::Exact own(part);
    std::vector<Match> found;
    bpe::SpecialTokens::Search each(tokens, own.data(), own.size());
    for (Match match; (match = each.next()).value != bpe::no_special;)
      found.push_back(match);
    return found;
  };
  const std::vector<Match> found = search(text.view());
  fuzz::expect(std::equal(found.begin(), found.end(), expected.begin(), expected.end(), same),
               "tokens are found like by the naive search");
  if (text.size() == 0)
    return 0;
  size_t place = place_number % text.size();
  while (place > 0 && bpe::continues_character(text.data()[place]))
    --place;
  if (place == 0 || tokens.stands_across(text.data(), text.size(), place))
    return 0;
  std::vector<Match> apart = search(text.view().substr(0, place));
  for (const Match &match : search(text.view().substr(place)))
    apart.push_back({match.start + place, match.stop + place, match.value});
  fuzz::expect(std::equal(apart.begin(), apart.end(), expected.begin(), expected.end(), same),
               "a text may be cut where no token crosses");
  return 0;
}
