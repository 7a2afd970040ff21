#include "find_matches.hpp"

#include <algorithm>

namespace flat_tokens {

namespace {

constexpr unsigned skip_bits = 5; // another token is skipped after every 32 without a match

template <size_t shortest> inline uint64_t slot_of(const uint32_t *token) {
  uint64_t key = token[0] * 0x9E3779B185EBCA87u + token[1] * 0xC2B2AE3D27D4EB4Fu;
  if constexpr (shortest == 3)
    key += token[2] * 0x165667B19E3779F9u;
  return key >> (64 - match_table_bits);
}

template <size_t shortest> inline bool is_same(const uint32_t *a, const uint32_t *b) {
  return a[0] == b[0] && a[1] == b[1] && a[shortest - 1] == b[shortest - 1];
}

inline uint32_t bytes_of(size_t tokens) {
  return static_cast<uint32_t>(tokens * sizeof(uint32_t));
}

template <size_t shortest>
size_t find(const uint32_t *tokens, size_t count, size_t block_tokens, size_t farthest, Match *const matches,
            uint32_t *table) {
  Match *next = matches;
  for (size_t low = 0; low < count; low += block_tokens) {
    const size_t high = count - low < block_tokens ? count : low + block_tokens;
    size_t done = low; // what is before it is in a match or among the literals of one
    for (size_t at = low; at + shortest <= high;) {
      uint32_t &entry = table[slot_of<shortest>(tokens + at)]; // one more than a place, 0 of none
      const size_t place = entry;
      entry = static_cast<uint32_t>(at) + 1;
      if (place == 0 || at + 1 - place > farthest || !is_same<shortest>(tokens + place - 1, tokens + at)) {
        at += 1 + ((at - done) >> skip_bits);
        continue;
      }
      const size_t offset = at + 1 - place;
      size_t first = at, stop = at + shortest;
      while (stop < high && tokens[stop] == tokens[stop - offset])
        ++stop;
      while (first > done && first > offset && tokens[first - 1] == tokens[first - 1 - offset])
        --first;
      *next++ = {bytes_of(offset), bytes_of(first - done), bytes_of(stop - first), 0};
      for (const size_t other : {at + 1, stop - 2})
        if (other + shortest <= count)
          table[slot_of<shortest>(tokens + other)] = static_cast<uint32_t>(other) + 1;
      done = at = stop;
    }
    *next++ = {0, bytes_of(high - done), 0, 0};
  }
  return static_cast<size_t>(next - matches);
}

} // namespace

size_t find_matches(const uint32_t *tokens, size_t count, size_t shortest, size_t block_tokens,
                    size_t farthest, Match *matches, uint32_t *table) {
  std::fill_n(table, size_t{1} << match_table_bits, 0u);
  return shortest == 2 ? find<2>(tokens, count, block_tokens, farthest, matches, table)
                       : find<3>(tokens, count, block_tokens, farthest, matches, table);
}

} // namespace flat_tokens
