// XXH64, as defined by its public specification (xxhash.com, XXH64 version 0.1.1).
//
// The hash is the same on every machine, because it decides which documents belong to the validation split.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bpe {

uint64_t xxh64(const uint8_t *bytes, size_t size, uint64_t seed);

// Streaming XXH64: digest() equals xxh64 of all bytes added so far, however they were split. Memory is
// constant. digest() does not change the state and may be called at any time. Not thread-safe.
class Xxh64 {
public:
  explicit Xxh64(uint64_t seed);
  void update(const uint8_t *bytes, size_t size);
  uint64_t digest() const;

private:
  void take_stripe(const uint8_t *stripe);

  uint64_t seed_;
  uint64_t lanes_[4];
  uint64_t size_ = 0;     // number of bytes added so far
  uint8_t held_[32] = {}; // the last size_ % 32 of these bytes
};

} // namespace bpe
