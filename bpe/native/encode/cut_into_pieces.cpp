#include "encode/cut_into_pieces.hpp"

#include "normalize/normalized_cut.hpp"
#include "text/find_bytes.hpp"
#include "text/utf8.hpp"

#include <algorithm>

namespace bpe {

namespace {

// Return whether two occurrences of the string can overlap ("aa", "\n\n"). Only a search from the start of
// the text then finds the leftmost ones.
bool overlaps_itself(std::string_view text) {
  for (size_t shift = 1; shift < text.size(); ++shift)
    if (text.substr(shift) == text.substr(0, text.size() - shift))
      return true;
  return false;
}

// Return whether the result depends on a token, and no text, preceding a part of a document.
bool asks_for_start(const WithinDocuments &within) {
  return within.normalizer && (within.normalizer->prefixes() || within.normalizer->prepends());
}

// Return whether a cut between two pretokens preserves all special tokens and the prefix of the text after
// each.
bool keeps_tokens(std::string_view text, const WithinDocuments &within, size_t place) {
  return !within.special.stands_across(bytes_of(text), text.size(), place) &&
         !(asks_for_start(within) && within.special.may_end_at(text, place));
}

// Return an offset at or shortly before `limit` where a document may be cut without changing its pretokens,
// or 0 if there is none. A cut depends on two characters only, so the search starts near the limit.
size_t cut_within_document(std::string_view text, std::string_view separator, const WithinDocuments &within,
                           size_t limit) {
  constexpr size_t window_bytes = 4096;
  constexpr int windows = 16; // that had only invalid cuts
  for (int i = 0; i < windows && limit > 0; ++i) {
    while (limit > 0 && continues_character(text[limit]))
      --limit;
    size_t start = limit - std::min(limit, window_bytes);
    while (start < limit && continues_character(text[start]))
      ++start;
    const size_t cut =
        last_normalized_cut(within.automaton, within.normalizer, bytes_of(text) + start, limit - start, true);
    if (cut == 0)
      return 0;
    // A separator is not part of a document, and a special token is not part of a pretoken.
    const size_t place = start + cut;
    const size_t reach = separator.size() - 1;
    const std::string_view around =
        text.substr(place - std::min(place, reach), std::min(place, reach) + reach);
    if (around.find(separator) == std::string_view::npos && keeps_tokens(text, within, place))
      return place;
    limit = start;
  }
  return 0;
}

} // namespace

size_t last_cut(std::string_view text, const WithinDocuments &within) {
  constexpr int max_tries = 1024; // adjacent special tokens may have no valid cut between them
  const size_t reach = within.special.reach();
  size_t limit = text.size() - std::min(text.size(), reach);
  while (limit > 0 && continues_character(text[limit]))
    --limit;
  for (int i = 0; i < max_tries && limit > 0; ++i) {
    limit = last_normalized_cut(within.automaton, within.normalizer, bytes_of(text), limit, true);
    if (limit > 0 && keeps_tokens(text, within, limit))
      return limit;
  }
  const SpecialTokens &raw = within.special.raw();
  const SpecialTokens &tokens = raw.empty() ? within.special.normalized() : raw;
  if (!tokens.plain() || asks_for_start(within))
    return 0;
  size_t cut = 0;
  SpecialTokens::Search search(tokens, bytes_of(text), text.size());
  for (SpecialTokens::Match match; (match = search.next()).start + reach <= text.size();)
    cut = match.stop;
  return cut;
}

std::vector<size_t> cut_into_pieces(std::string_view text, std::string_view separator,
                                    const std::optional<WithinDocuments> &within) {
  std::vector<size_t> starts{0};
  const uint8_t *const bytes = bytes_of(text);
  const bool search_all = overlaps_itself(separator);
  size_t position = 0, found = 0;
  bool searched = false; // whether `found` is the first separator from `position`
  while (text.size() - starts.back() > piece_bytes) {
    if (!search_all)
      position = std::max(position, starts.back() + piece_bytes - separator.size());
    if (!searched || found < position)
      found = find_bytes(bytes, text.size(), position, separator);
    searched = true;
    if (within && !search_all && found - starts.back() > 2 * piece_bytes) {
      const size_t cut = cut_within_document(text, separator, *within, starts.back() + piece_bytes);
      if (cut > starts.back()) {
        starts.push_back(cut);
        continue;
      }
    }
    if (found == text.size())
      break;
    position = found + separator.size();
    searched = false;
    if (position - starts.back() >= piece_bytes)
      starts.push_back(position);
  }
  starts.push_back(text.size());
  return starts;
}

} // namespace bpe
