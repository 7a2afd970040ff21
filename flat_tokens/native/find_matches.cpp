// for each group of 64 offsets:
//   exchange each with the last offset of its key
//   take the matches greedily from the left, and extend each both ways
//
// The first loop has no branch that depends on tokens, so branch mispredictions are rare.
#include "find_matches.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace flat_tokens {

namespace {

constexpr size_t group_offsets = 64;

inline uint32_t bytes_of(size_t tokens) {
  return static_cast<uint32_t>(tokens * sizeof(uint32_t));
}

// The upper bits select the entry of the table. The lower bits distinguish most other tokens of that entry.
template <size_t shortest> inline uint32_t key_of(const uint32_t *token) {
  const uint32_t mixed = shortest == 2 ? token[0] ^ std::rotl(token[1], 15)
                                       : token[0] ^ std::rotl(token[1], 12) ^ std::rotl(token[2], 23);
  return mixed * 0x9E3779B1u;
}

// The last offset of each key. An entry is the offset plus 1, or 0 if empty, with bits of the key above it,
// so that most other tokens are recognized without reading them.
class Table {
public:
  Table(uint32_t *entries, size_t count) : entries_(entries), offset_bits_(std::bit_width(count)) {
    std::fill_n(entries, size_t{1} << match_table_bits, 0u);
  }

  // Enters an offset. Returns 1 plus the last one before it that most likely has the same tokens, 0 for none.
  uint32_t exchange(uint32_t key, size_t offset) {
    uint32_t &entry = entries_[key >> (32 - match_table_bits)];
    const uint32_t marks = key << offset_bits_;
    const uint32_t earlier = entry ^ marks;
    entry = marks | static_cast<uint32_t>(offset + 1);
    return earlier >> offset_bits_ == 0 ? earlier : 0;
  }

private:
  uint32_t *entries_;
  int offset_bits_;
};

// Returns the first offset in [stop, high) with a token that differs from the token `distance` earlier, or
// `high`.
inline size_t end_of_match(const uint32_t *tokens, size_t distance, size_t stop, size_t high) {
  while (stop < high && tokens[stop] == tokens[stop - distance])
    ++stop;
  return stop;
}

// Returns bits of the offsets from `offset` on, in the group that begins at `first`.
inline uint64_t bits_from(size_t offset, size_t first) {
  if (offset <= first)
    return ~uint64_t{0};
  return offset - first < group_offsets ? ~uint64_t{0} << (offset - first) : 0;
}

template <size_t shortest>
size_t find(const uint32_t *tokens, size_t count, size_t block_tokens, size_t farthest, Match *const matches,
            uint32_t *entries) {
  Table table(entries, count);
  Match *next = matches;
  const size_t stop_of_keys = count - std::min(count, shortest - 1);
  for (size_t low = 0; low < count; low += block_tokens) {
    const size_t high = std::min(count, low + block_tokens);
    size_t done = low; // earlier tokens are in a match or are literals of one
    for (size_t first = low; first < high;) {
      const size_t stop_of_group = std::min(high, first + group_offsets);
      uint32_t earlier[group_offsets];
      uint64_t found = 0; // a bit per offset
      for (size_t at = first; at < std::min(stop_of_group, stop_of_keys); ++at) {
        earlier[at - first] = table.exchange(key_of<shortest>(tokens + at), at);
        found |= uint64_t{earlier[at - first] != 0} << (at - first);
      }
      for (found &= bits_from(done, first); found != 0;) {
        const size_t at = first + static_cast<size_t>(std::countr_zero(found));
        const size_t distance = at + 1 - earlier[at - first];
        found &= found - 1;
        if (at + shortest > high || distance > farthest ||
            std::memcmp(tokens + at, tokens + at - distance, shortest * sizeof(uint32_t)) != 0)
          continue;
        const size_t stop = end_of_match(tokens, distance, at + shortest, high);
        size_t start = at;
        while (start > done && start > distance && tokens[start - 1] == tokens[start - 1 - distance])
          --start;
        *next++ = {bytes_of(distance), bytes_of(start - done), bytes_of(stop - start), 0};
        done = stop;
        found &= bits_from(done, first);
      }
      first = std::max(stop_of_group + 1, done) - 1; // of a match beyond the group, only the last offset
    }
    *next++ = {0, bytes_of(high - done), 0, 0};
  }
  return static_cast<size_t>(next - matches);
}

} // namespace

size_t find_matches(const uint32_t *tokens, size_t count, size_t shortest, size_t block_tokens,
                    size_t farthest, Match *matches, uint32_t *table) {
  return shortest == 2 ? find<2>(tokens, count, block_tokens, farthest, matches, table)
                       : find<3>(tokens, count, block_tokens, farthest, matches, table);
}

} // namespace flat_tokens
