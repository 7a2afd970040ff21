// Start flags are rare: a block without one costs an OR and a maximum, which the compiler makes vectors of.
#include "token_facts.hpp"

#include "instruction_sets.hpp"

#include "common/byte_order.hpp"
#include "common/content_hash.hpp"

#include <algorithm>
#include <array>

namespace flat_tokens {

namespace {

constexpr size_t tokens_at_once = 64;

// Inlined into each variant, and compiled for its vectors.
[[gnu::always_inline]] inline TokenFacts facts_of(const uint32_t *encoded, size_t count) {
  TokenFacts facts;
  bpe::Xxh64 positions{0};
  std::array<uint64_t, tokens_at_once> found;
  for (size_t first = 0; first < count; first += tokens_at_once) {
    const uint32_t *const block = encoded + first;
    const size_t size = std::min(count - first, tokens_at_once);
    uint32_t any = 0, largest = 0;
    if (size == tokens_at_once) { // a loop of known length needs no rest
      for (size_t i = 0; i < tokens_at_once; ++i) {
        any |= block[i];
        largest = block[i] > largest ? block[i] : largest;
      }
    } else {
      for (size_t i = 0; i < size; ++i) {
        any |= block[i];
        largest = block[i] > largest ? block[i] : largest;
      }
    }
    facts.largest = std::max(facts.largest, largest);
    if ((any & 1) == 0)
      continue;
    size_t found_count = 0;
    for (size_t i = 0; i < size; ++i)
      if ((block[i] & 1) != 0)
        found[found_count++] = first + i;
    positions.update(reinterpret_cast<const uint8_t *>(found.data()), sizeof(uint64_t) * found_count);
    facts.start_count += found_count;
  }
  facts.starts_digest = positions.digest();
  return facts;
}

#ifdef FLAT_TOKENS_HAS_AVX
FLAT_TOKENS_AVX2 TokenFacts facts_avx2(const uint32_t *encoded, size_t count) {
  return facts_of(encoded, count);
}
#endif

} // namespace

TokenFacts token_facts(const uint32_t *encoded, size_t count) {
#ifdef FLAT_TOKENS_HAS_AVX
  if (has_avx2())
    return facts_avx2(encoded, count);
#endif
  return facts_of(encoded, count);
}

} // namespace flat_tokens
