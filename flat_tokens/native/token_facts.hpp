// What some encoded tokens come to: enough to hold them against seq_starts and max_token_id later.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

struct TokenFacts {
  size_t start_count = 0;     // tokens with a start flag
  uint64_t starts_digest = 0; // XXH64 of their positions: uint64, little endian, end to end
  uint32_t largest = 0;       // encoded token, 0 of none
};

TokenFacts token_facts(const uint32_t *encoded, size_t count);

} // namespace flat_tokens
