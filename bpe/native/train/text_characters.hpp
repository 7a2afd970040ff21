// Pretokens of text as characters: what a training starts from whose entries are text.
#pragma once

#include "train/trainer.hpp"

#include <cstdint>
#include <vector>

namespace bpe {

constexpr size_t code_points = 0x110000;

// How often each code point occurs in pretokens of bytes, each pretoken as often as its count: uint64[code_points].
// Text that is not valid UTF-8 gives arbitrary code points.
std::vector<uint64_t> count_characters(const PretokenView &pretokens);

// ids of the characters end to end, and where those of each pretoken end.
struct CharacterIds {
  std::vector<uint32_t> ids;
  std::vector<uint64_t> ends;
};

// id_of: int32[code_points]; characters whose id is negative are left out.
CharacterIds character_ids(const PretokenView &pretokens, const int32_t *id_of);

} // namespace bpe
