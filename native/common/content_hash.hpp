// XXH64 of bytes, as its public specification defines it (xxhash.com, XXH64 version 0.1.1).
//
// The same on every machine: the validation split of a document depends on it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bpe {

uint64_t xxh64(const uint8_t *bytes, size_t size, uint64_t seed);

// The same of bytes that come in parts: however they are cut, digest() is xxh64 of all of them joined. Memory
// is constant; digest() changes nothing, so it may be asked in between. One thread at a time.
class Xxh64 {
public:
  explicit Xxh64(uint64_t seed);
  void update(const uint8_t *bytes, size_t size);
  uint64_t digest() const;

private:
  void take_stripe(const uint8_t *stripe);

  uint64_t seed_;
  uint64_t lanes_[4];
  uint64_t size_ = 0;     // of all bytes so far
  uint8_t held_[32] = {}; // the last size_ % 32 of them
};

} // namespace bpe
