// Pretokens as letters: what a training starts from whose first entries are not all the bytes. A letter is a
// byte or, of text, a character.
#pragma once

#include "train/trainer.hpp"

#include <cstdint>
#include <vector>

namespace bpe {

constexpr size_t bytes_there_are = 256, characters_there_are = 0x110000;

// By letter: how often it occurs, each pretoken as often as its count, and whether it is the last of a
// pretoken.
struct LetterCounts {
  std::vector<uint64_t> occurrences;
  std::vector<uint8_t> is_last;
};

// of_text: pretokens are valid UTF-8; other bytes give arbitrary characters.
LetterCounts count_letters(const PretokenView &pretokens, bool of_text);

// Ids end to end, and where those of each pretoken end.
struct LetterIds {
  std::vector<uint32_t> ids;
  std::vector<uint64_t> ends;
};

// ids, last_ids: int32 by letter; last_ids are those of the last letters of pretokens. A negative one: the
// letter is left out.
LetterIds letter_ids(const PretokenView &pretokens, bool of_text, const int32_t *ids,
                     const int32_t *last_ids);

} // namespace bpe
