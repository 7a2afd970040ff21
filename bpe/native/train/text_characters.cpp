#include "train/text_characters.hpp"

#include "text/utf8.hpp"

#include <algorithm>

namespace bpe {

namespace {

// each(code point, number of its pretoken) in the order of the text; done(number) behind each pretoken.
template <class Each, class Done>
void for_each_character(const PretokenView &pretokens, const Each &each, const Done &done) {
  uint64_t at = 0;
  for (size_t i = 0; i < pretokens.size; ++i) {
    const uint64_t stop = pretokens.ends[i];
    while (at < stop) {
      const Char character = read_char(pretokens.bytes + at, pretokens.bytes + stop);
      each(character.code_point, i);
      at += character.length;
    }
    done(i);
  }
}

} // namespace

std::vector<uint64_t> count_characters(const PretokenView &pretokens) {
  std::vector<uint64_t> occurrences(code_points);
  for_each_character(
      pretokens, [&](uint32_t code_point, size_t i) { occurrences[code_point] += pretokens.counts[i]; },
      [](size_t) {});
  return occurrences;
}

CharacterIds character_ids(const PretokenView &pretokens, const int32_t *id_of) {
  const uint64_t bytes = pretokens.size == 0 ? 0 : pretokens.ends[pretokens.size - 1];
  const auto within = static_cast<size_t>(
      std::count_if(pretokens.bytes, pretokens.bytes + bytes, continues_character));
  CharacterIds out;
  out.ids.reserve(bytes - within);
  out.ends.reserve(pretokens.size);
  for_each_character(
      pretokens,
      [&](uint32_t code_point, size_t) {
        if (id_of[code_point] >= 0)
          out.ids.push_back(static_cast<uint32_t>(id_of[code_point]));
      },
      [&](size_t) { out.ends.push_back(out.ids.size()); });
  return out;
}

} // namespace bpe
