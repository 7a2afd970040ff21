// Pretokens as letters: what a training starts from whose first entries are not all the bytes. A letter is a
// byte or, of text, a character.
#pragma once

#include "train/trainer.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace bpe {

constexpr size_t bytes_there_are = 256, characters_there_are = 0x110000;

// Where in a pretoken a letter stands: 1 at its end, 2 not at its beginning, 3 both, 0 neither.
constexpr size_t letter_places = 4;

// By letter: how often it occurs, each pretoken as often as its count, and at which places: bit p for place
// p.
struct LetterCounts {
  std::vector<uint64_t> occurrences;
  std::vector<uint8_t> places;
};

// of_text: pretokens are valid UTF-8; other bytes give arbitrary characters.
LetterCounts count_letters(const PretokenView &pretokens, bool of_text);

// Ids end to end, and where those of each pretoken end.
struct LetterIds {
  std::vector<uint32_t> ids;
  std::vector<uint64_t> ends;
};

// ids: by place, int32 by letter. A negative one: the letter is left out.
LetterIds letter_ids(const PretokenView &pretokens, bool of_text,
                     const std::array<const int32_t *, letter_places> &ids);

} // namespace bpe
