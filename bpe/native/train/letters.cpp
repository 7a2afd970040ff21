#include "train/letters.hpp"

#include "text/utf8.hpp"

namespace bpe {

namespace {

// Call each(letter, its position, index of the pretoken), and done(index) after each pretoken.
template <class Each, class Done>
void for_each_letter(const PretokenView &pretokens, bool of_text, const Each &each, const Done &done) {
  uint64_t at = 0;
  for (size_t i = 0; i < pretokens.size; ++i) {
    const uint64_t start = at, stop = pretokens.ends[i];
    while (at < stop) {
      const Char letter =
          of_text ? read_char(pretokens.bytes + at, pretokens.bytes + stop) : Char{pretokens.bytes[at], 1};
      const size_t place = (at != start) * 2u + (at + letter.length == stop);
      at += letter.length;
      each(letter.code_point, place, i);
    }
    done(i);
  }
}

} // namespace

LetterCounts count_letters(const PretokenView &pretokens, bool of_text) {
  const size_t letters = of_text ? characters_there_are : bytes_there_are;
  LetterCounts counts{std::vector<uint64_t>(letters), std::vector<uint8_t>(letters)};
  for_each_letter(
      pretokens, of_text,
      [&](uint32_t letter, size_t place, size_t i) {
        counts.occurrences[letter] += pretokens.counts[i];
        counts.places[letter] |= static_cast<uint8_t>(1u << place);
      },
      [](size_t) {});
  return counts;
}

LetterIds letter_ids(const PretokenView &pretokens, bool of_text,
                     const std::array<const int32_t *, letter_places> &ids) {
  size_t letters = 0;
  for_each_letter(
      pretokens, of_text, [&](uint32_t letter, size_t place, size_t) { letters += ids[place][letter] >= 0; },
      [](size_t) {});
  LetterIds out;
  out.ids.reserve(letters);
  out.ends.reserve(pretokens.size);
  for_each_letter(
      pretokens, of_text,
      [&](uint32_t letter, size_t place, size_t) {
        if (const int32_t id = ids[place][letter]; id >= 0)
          out.ids.push_back(static_cast<uint32_t>(id));
      },
      [&](size_t) { out.ends.push_back(out.ids.size()); });
  return out;
}

} // namespace bpe
