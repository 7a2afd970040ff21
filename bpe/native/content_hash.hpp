// XXH64 of bytes, as its public specification defines it (xxhash.com, XXH64 version 0.1.1).
//
// The same on every machine: the validation split of a document depends on it. About 10 GB/s on long input.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bpe {

uint64_t xxh64(const uint8_t *bytes, size_t size, uint64_t seed);

} // namespace bpe
