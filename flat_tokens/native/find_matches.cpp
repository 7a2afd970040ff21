// for each group of 64 offsets:
//   compute their keys; exchange them with the entries of the table; compare the tokens that were found
// take the matches greedily from the left and extend each
//
// The first two loops have no branch that depends on tokens, so branch mispredictions are rare.
#include "find_matches.hpp"

#include "clones.hpp"

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
  Table(uint32_t *entries, size_t count)
      : entries_(entries), offset_bits_(std::bit_width(count)), most_(uint32_t{1} << offset_bits_) {
    std::fill_n(entries, size_t{1} << match_table_bits, 0u);
  }

  // Enters the offsets from `first` on, which have these keys. If is_found(earlier[i]), earlier[i] is 1 plus
  // the last offset before it that most likely has the same tokens.
  void exchange(const uint32_t *keys, size_t count, size_t first, uint32_t *earlier) {
    for (size_t i = 0; i < count; ++i) {
      uint32_t &entry = entries_[keys[i] >> (32 - match_table_bits)];
      const uint32_t marks = keys[i] << offset_bits_;
      earlier[i] = entry ^ marks;
      entry = marks | static_cast<uint32_t>(first + i + 1);
    }
  }
  bool is_found(uint32_t earlier) const { // signed: baseline vectors compare no other numbers
    return (static_cast<int32_t>(earlier) > 0) & (static_cast<int32_t>(earlier) < most_);
  }

private:
  uint32_t *entries_;
  int offset_bits_;
  int32_t most_;
};

// The offsets [first, first + count), after they were entered in the table.
class Group {
public:
  template <size_t shortest>
  [[gnu::always_inline]] inline void look_up(const uint32_t *tokens, size_t first, size_t count,
                                             Table &table) {
    if (count == group_offsets) // a constant count makes faster loops
      look_up_all<shortest>(tokens, first, group_offsets, table);
    else
      look_up_all<shortest>(tokens, first, count, table);
  }

  // Returns a bit for each offset with an earlier match.
  uint64_t found() const {
    uint64_t bits = 0;
    for (size_t i = 0; i < group_offsets; i += 8) {
      uint64_t flags;
      std::memcpy(&flags, is_found_ + i, sizeof flags);
      bits |= (flags * 0x0102040810204080u >> 56) << i; // little endian: the first offset is the lowest bit
    }
    return bits;
  }
  // An offset plus 1.
  size_t earlier(size_t i) const { return earlier_[i]; }

private:
  template <size_t shortest>
  [[gnu::always_inline]] inline void look_up_all(const uint32_t *tokens, size_t first, size_t count,
                                                 Table &table) {
    uint32_t keys[group_offsets];
    for (size_t i = 0; i < count; ++i)
      keys[i] = key_of<shortest>(tokens + first + i);
    table.exchange(keys, count, first, earlier_);
    for (size_t i = 0; i < count; ++i)
      is_found_[i] = table.is_found(earlier_[i]);
    std::fill(is_found_ + count, is_found_ + group_offsets, uint8_t{0});
  }

  uint32_t earlier_[group_offsets];
  uint8_t is_found_[group_offsets];
};

template <size_t shortest> inline bool is_same(const uint32_t *a, const uint32_t *b) {
  uint64_t two_of_a, two_of_b;
  std::memcpy(&two_of_a, a, sizeof two_of_a);
  std::memcpy(&two_of_b, b, sizeof two_of_b);
  return ((two_of_a ^ two_of_b) | (a[shortest - 1] ^ b[shortest - 1])) == 0;
}

// Returns the first offset in [stop, high) with a token that differs from the token `distance` earlier, or
// `high`. Compares two tokens at a time: most matches are a few tokens longer than the shortest, so predicted
// branches are faster than vector comparisons.
inline size_t end_of_match(const uint32_t *tokens, size_t distance, size_t stop, size_t high) {
  while (stop + 2 <= high) {
    uint64_t here, there;
    std::memcpy(&here, tokens + stop, sizeof here);
    std::memcpy(&there, tokens + stop - distance, sizeof there);
    const uint64_t difference = here ^ there;
    if (difference != 0) // little endian: the first token is the lower half
      return stop + (static_cast<uint32_t>(difference) == 0);
    stop += 2;
  }
  while (stop < high && tokens[stop] == tokens[stop - distance])
    ++stop;
  return stop;
}

template <size_t shortest>
[[gnu::always_inline]] inline size_t find(const uint32_t *tokens, size_t count, size_t block_tokens,
                                          size_t farthest, Match *const matches, uint32_t *entries) {
  Table table(entries, count);
  Group group;
  Match *next = matches;
  const size_t stop_of_keys = count - std::min(count, shortest - 1);
  for (size_t low = 0; low < count; low += block_tokens) {
    const size_t high = std::min(count, low + block_tokens);
    size_t done = low; // earlier tokens are in a match or are literals of one
    for (size_t first = low; first < high;) {
      const size_t stop_of_group = std::min(high, first + group_offsets);
      group.look_up<shortest>(tokens, first, std::clamp(stop_of_keys, first, stop_of_group) - first, table);
      const auto from = [&](uint64_t bits, size_t offset) { // bits of offsets from `offset` on
        return offset >= first + group_offsets ? 0 : bits >> (offset - first) << (offset - first);
      };
      for (uint64_t found = from(group.found(), std::max(first, done)); found != 0;) {
        const size_t at = first + static_cast<size_t>(std::countr_zero(found));
        const size_t earlier = group.earlier(at - first) - 1, distance = at - earlier;
        if (!is_same<shortest>(tokens + earlier, tokens + at) | (distance > farthest) |
            (at + shortest > high)) [[unlikely]] {
          found &= found - 1;
          continue;
        }
        const size_t stop = end_of_match(tokens, distance, at + shortest, high);
        size_t start = at;
        while (start > done && start > distance && tokens[start - 1] == tokens[start - 1 - distance])
          --start;
        *next++ = {bytes_of(distance), bytes_of(start - done), bytes_of(stop - start), 0};
        done = stop;
        found = from(found, stop);
      }
      first = std::max(stop_of_group + 1, done) - 1; // of a match beyond the group, only the last offset
    }
    *next++ = {0, bytes_of(high - done), 0, 0};
  }
  return static_cast<size_t>(next - matches);
}

} // namespace

// Vectors of 32 bytes take less time, and vectors of 64 bytes take more.
FLAT_TOKENS_CLONES size_t find_matches(const uint32_t *tokens, size_t count, size_t shortest,
                                       size_t block_tokens, size_t farthest, Match *matches,
                                       uint32_t *table) {
  return shortest == 2 ? find<2>(tokens, count, block_tokens, farthest, matches, table)
                       : find<3>(tokens, count, block_tokens, farthest, matches, table);
}

} // namespace flat_tokens
