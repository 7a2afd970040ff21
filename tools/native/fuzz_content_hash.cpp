// XXH64 of bytes in parts equals the hash of all bytes at once, and a literal implementation of the
// specification.
//
// planted: native/common/content_hash.cpp: `held + taken < 32` -> `held + taken <= 32`
#include "fuzz_input.hpp"

#include "common/content_hash.hpp"

#include <bit>

namespace {

constexpr uint64_t prime[] = {0,
                              11400714785074694791u,
                              14029467366897019727u,
                              1609587929392839161u,
                              9650029242287828579u,
                              2870177450012600261u};

uint64_t word(const uint8_t *bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= uint64_t{bytes[i]} << 8 * i;
  return value;
}

uint64_t round(uint64_t accumulator, uint64_t lane) {
  return std::rotl(accumulator + lane * prime[2], 31) * prime[1];
}

uint64_t plain_xxh64(const uint8_t *bytes, size_t size, uint64_t seed) {
  uint64_t accumulators[] = {seed + prime[1] + prime[2], seed + prime[2], seed, seed - prime[1]};
  uint64_t hash = seed + prime[5];
  size_t at = 0;
  if (size >= 32) {
    for (; at + 32 <= size; at += 32)
      for (size_t lane = 0; lane < 4; ++lane)
        accumulators[lane] = round(accumulators[lane], word(bytes + at + 8 * lane, 8));
    hash = 0;
    constexpr int turns[] = {1, 7, 12, 18};
    for (size_t lane = 0; lane < 4; ++lane)
      hash += std::rotl(accumulators[lane], turns[lane]);
    for (const uint64_t accumulator : accumulators)
      hash = (hash ^ round(0, accumulator)) * prime[1] + prime[4];
  }
  hash += size;
  for (; at + 8 <= size; at += 8)
    hash = std::rotl(hash ^ round(0, word(bytes + at, 8)), 27) * prime[1] + prime[4];
  if (at + 4 <= size) {
    hash = std::rotl(hash ^ (word(bytes + at, 4) * prime[1]), 23) * prime[2] + prime[3];
    at += 4;
  }
  for (; at < size; ++at)
    hash = std::rotl(hash ^ (bytes[at] * prime[5]), 11) * prime[1];
  hash = (hash ^ (hash >> 33)) * prime[2];
  hash = (hash ^ (hash >> 29)) * prime[3];
  return hash ^ (hash >> 32);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const std::string_view head = input.bytes(8);
  const uint64_t seed = word(bpe::bytes_of(head), head.size());
  const std::string_view parts = input.bytes(8);
  fuzz::Input how(bpe::bytes_of(parts), parts.size());
  const fuzz::Exact bytes(input.rest());
  const uint64_t wanted = plain_xxh64(bytes.data(), bytes.size(), seed);
  fuzz::expect(bpe::xxh64(bytes.data(), bytes.size(), seed) == wanted,
               "xxh64 is what its specification says");
  bpe::Xxh64 hash(seed);
  for (size_t at = 0; at < bytes.size();) {
    const fuzz::Exact part(bytes.view().substr(at, how.left() > 0 ? how.below(80) : bytes.size()));
    hash.update(part.data(), part.size());
    at += part.size();
    fuzz::expect(hash.digest() == plain_xxh64(bytes.data(), at, seed),
                 "parts are hashed as all of them joined");
  }
  return 0;
}
