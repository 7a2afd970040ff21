// The byte order of all that is read or written as words: little-endian, that of the machines this runs on.
#pragma once

#include <bit>

namespace bpe {

static_assert(std::endian::native == std::endian::little, "words in memory are taken for little-endian");

} // namespace bpe
