// Pretokens as letters, for a training with initial entries other than all bytes. A letter is a byte or, in
// text, a character.
#pragma once

#include "train/trainer.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace bpe {

constexpr size_t bytes_there_are = 256, characters_there_are = 0x110000;

// Position of a letter in a pretoken: 1 at its end, 2 not at its start, 3 both, 0 neither.
constexpr size_t letter_places = 4;

// Per letter: how often it occurs, weighted by the counts of the pretokens, and at which positions: bit p for
// position p.
struct LetterCounts {
  std::vector<uint64_t> occurrences;
  std::vector<uint8_t> places;
};

// of_text: pretokens are valid UTF-8; other bytes give arbitrary characters.
LetterCounts count_letters(const PretokenView &pretokens, bool of_text);

// Concatenated IDs, and the end of the IDs of each pretoken.
struct LetterIds {
  std::vector<uint32_t> ids;
  std::vector<uint64_t> ends;
};

// ids: per position, int32 by letter. A negative ID drops the letter.
LetterIds letter_ids(const PretokenView &pretokens, bool of_text,
                     const std::array<const int32_t *, letter_places> &ids);

} // namespace bpe
