// Words are read and written in little-endian order, the native order of every supported machine.
#pragma once

#include <bit>

namespace bpe {

static_assert(std::endian::native == std::endian::little, "words in memory are taken for little-endian");

} // namespace bpe
