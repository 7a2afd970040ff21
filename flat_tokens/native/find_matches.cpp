#include "find_matches.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace flat_tokens {

namespace {

constexpr unsigned skip_bits = 5; // another token is skipped after every 32 without a match

// The upper bits are the slot of the tokens in the table, those below tell most others there from them.
template <size_t shortest> inline uint64_t key_of(const uint32_t *token) {
  uint64_t key = token[0] * 0x9E3779B185EBCA87u + token[1] * 0xC2B2AE3D27D4EB4Fu;
  if constexpr (shortest == 3)
    key += token[2] * 0x165667B19E3779F9u;
  return key;
}

inline uint64_t slot_of(uint64_t key) {
  return key >> (64 - match_table_bits);
}

template <size_t shortest> inline bool is_same(const uint32_t *a, const uint32_t *b) {
  return a[0] == b[0] && a[1] == b[1] && a[shortest - 1] == b[shortest - 1];
}

inline uint32_t bytes_of(size_t tokens) {
  return static_cast<uint32_t>(tokens * sizeof(uint32_t));
}

// An entry of the table is one more than a place, 0 of none, and above its bits some of the key of the tokens
// there: tokens that are others are mostly known without a look at them.
class Table {
public:
  Table(uint32_t *entries, size_t count)
      : entries_(entries), place_mask_((uint64_t{1} << std::bit_width(count)) - 1) {
    std::fill_n(entries, size_t{1} << match_table_bits, 0u);
  }

  void put(uint64_t key, size_t at) { entries_[slot_of(key)] = marks(key) | static_cast<uint32_t>(at + 1); }

  // One more than the place of tokens that most likely are those of the key, and `at` in its stead; 0: none.
  uint32_t exchange(uint64_t key, size_t at) {
    uint32_t &entry = entries_[slot_of(key)];
    const uint32_t place = entry ^ marks(key);
    entry = marks(key) | static_cast<uint32_t>(at + 1);
    return place <= place_mask_ ? place : 0;
  }

private:
  uint32_t marks(uint64_t key) const {
    return static_cast<uint32_t>(key >> (32 - match_table_bits)) & ~place_mask_;
  }

  uint32_t *entries_;
  uint32_t place_mask_;
};

// Where tokens from `stop` on differ from those `offset` tokens earlier, `high` at last. Two at a time: most
// matches are a few tokens longer than the shortest, and where they end is hard to predict.
inline size_t end_of_match(const uint32_t *tokens, size_t offset, size_t stop, size_t high) {
  while (stop + 2 <= high) {
    uint64_t here, there;
    std::memcpy(&here, tokens + stop, sizeof here);
    std::memcpy(&there, tokens + stop - offset, sizeof there);
    const uint64_t difference = here ^ there;
    if (difference != 0) // little endian: the first token is the lower half
      return stop + (static_cast<uint32_t>(difference) == 0);
    stop += 2;
  }
  while (stop < high && tokens[stop] == tokens[stop - offset])
    ++stop;
  return stop;
}

template <size_t shortest>
size_t find(const uint32_t *tokens, size_t count, size_t block_tokens, size_t farthest, Match *const matches,
            Table table) {
  Match *next = matches;
  for (size_t low = 0; low < count; low += block_tokens) {
    const size_t high = count - low < block_tokens ? count : low + block_tokens;
    size_t done = low; // what is before it is in a match or among the literals of one
    for (size_t at = low; at + shortest <= high;) {
      const size_t place = table.exchange(key_of<shortest>(tokens + at), at);
      if (place == 0 || at + 1 - place > farthest || !is_same<shortest>(tokens + place - 1, tokens + at)) {
        at += 1 + ((at - done) >> skip_bits);
        continue;
      }
      const size_t offset = at + 1 - place;
      size_t first = at, stop = at + shortest;
      stop = end_of_match(tokens, offset, stop, high);
      while (first > done && first > offset && tokens[first - 1] == tokens[first - 1 - offset])
        --first;
      *next++ = {bytes_of(offset), bytes_of(first - done), bytes_of(stop - first), 0};
      for (const size_t other : {at + 1, stop - 2})
        if (other + shortest <= count)
          table.put(key_of<shortest>(tokens + other), other);
      done = at = stop;
    }
    *next++ = {0, bytes_of(high - done), 0, 0};
  }
  return static_cast<size_t>(next - matches);
}

} // namespace

size_t find_matches(const uint32_t *tokens, size_t count, size_t shortest, size_t block_tokens,
                    size_t farthest, Match *matches, uint32_t *table) {
  const Table places(table, count);
  return shortest == 2 ? find<2>(tokens, count, block_tokens, farthest, matches, places)
                       : find<3>(tokens, count, block_tokens, farthest, matches, places);
}

} // namespace flat_tokens
