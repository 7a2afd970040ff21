// From text to cache keys, a block of 64 bytes at a time: the boundaries are found and the keys are made
// while the block is in registers.
//
// A block starts at a pretoken's start (pretokenize_blocks.hpp), so the pretokens that end in it lie in it
// whole. Where one ends decides where the next block starts: that is the one thing a block waits for, and all
// the rest of it runs beside the next one's walk. At most 16 pretokens are taken, so that no branch asks how
// many there were: the next block starts that much earlier.
//
// English warm 500 -> 560 MB/s, code 540 -> 640, against writing the ends of pretokens to memory and loading
// the bytes of each (make_keys.hpp, which serves pretokens that come as ends).
#pragma once

#include "cache/key_walk.hpp"
#include "cache/make_keys.hpp"
#include "pretokenize/pretokenize_blocks.hpp"

namespace bpe {
namespace {

// The first 16 bits of a mask.
inline uint64_t first_sixteen(uint64_t mask) {
#if defined(__BMI2__)
  return __builtin_ia32_pdep_di(0xFFFF, mask);
#else
  for (int more = __builtin_popcountll(mask) - 16; more > 0; --more)
    mask &= ~bit(highest(mask));
  return mask;
#endif
}

// In a block that is not all ASCII: the boundaries before the first pretoken that is not looked up whole, and
// the size of that. A word is, however long it is (Russian cold 240 -> 266, warm 416 -> 497 MB/s).
struct SplitAhead {
  uint64_t boundaries;
  size_t size; // 0: none
};
inline SplitAhead split_ahead(const uint8_t *block, uint64_t boundaries, uint64_t wordless) {
  while (wordless != 0) {
    const int place = lowest(wordless);
    const uint64_t up_to_place = below(place) | bit(place);
    const uint64_t starts = boundaries & up_to_place, ends = boundaries & ~up_to_place;
    if (ends == 0)
      break;
    const int start = starts != 0 ? highest(starts) : 0, end = lowest(ends);
    const size_t size = static_cast<size_t>(end - start);
    if (is_split(block[start], size))
      return {boundaries & (below(start) | bit(start)), size};
    wordless &= ~below(end);
  }
  return {boundaries, 0};
}

// The keys of a block's pretokens, one by one. block: the text at p, or a copy of its last bytes.
struct PlainBlockKeys {
  static void make(const uint8_t *p, const uint8_t *, uint64_t boundaries, const uint8_t *readable,
                   WalkedKeys &out) {
    size_t i = out.count;
    int start = 0;
    for (; boundaries != 0; boundaries &= boundaries - 1) {
      const int end = lowest(boundaries);
      const size_t size = static_cast<size_t>(end - start);
      if (size > CacheKey::max_bytes) [[unlikely]] {
        out.bytes[i] = p + start;
        out.values[i] = static_cast<uint32_t>(size);
        out.long_items[out.long_count++] = static_cast<uint8_t>(i);
      } else {
        const CacheKey key = key_of(p + start, size, readable);
        out.keys[i] = key;
        out.hashes[i] = key.hash();
      }
      ++i;
      start = end;
    }
    out.count = i;
  }
};

// Stops the walk before the pretoken at p, which is not within a block.
template <class Simd, Pattern pattern>
[[gnu::noinline]] void stop_at(const uint8_t *p, const uint8_t *stop, WalkedKeys &made) {
  const uint8_t *const end = match_end<pattern, BlockRuns<Simd, rules_of(pattern).cased>>(p, stop);
  const size_t size = static_cast<size_t>(end - p);
  made.stop_bytes = size <= max_pretoken_bytes ? size : 0;
}

template <class Simd, Pattern pattern, class BlockKeys>
void walk_keys(const uint8_t *&at, const uint8_t *stop, const uint8_t *readable, WalkedKeys &out) {
  const uint8_t *p = at;
  WalkedKeys made = out; // in registers
  while (p < stop && made.count + walk_step <= made.room) {
    const size_t left = static_cast<size_t>(stop - p);
    uint8_t tail[tail_block_bytes];
    const uint8_t *block = p;
    uint64_t boundaries;
    if (left >= block_reads) [[likely]] {
      boundaries = block_boundaries<Simd, pattern>(p);
    } else {
      if (left > tail_bytes) {
        stop_at<Simd, pattern>(p, stop, out);
        break;
      }
      boundaries = tail_boundaries<Simd, pattern>(p, left, tail);
      block = tail;
    }
    boundaries = first_sixteen(boundaries);
    if (Simd::any_high(block)) [[unlikely]] {
      const SplitAhead split = split_ahead(block, boundaries, Simd::wordless_leads(block));
      boundaries = split.boundaries;
      if (split.size > 0) {
        out.stop_bytes = split.size;
        out.stopped_by_split = true;
        made.room = 0;
      }
    }
    if (boundaries == 0) [[unlikely]] {
      if (out.stop_bytes == 0)
        stop_at<Simd, pattern>(p, stop, out);
      break;
    }
    BlockKeys::make(p, block, boundaries, readable, made);
    p += highest(boundaries);
  }
  at = p;
  out.count = made.count;
  out.long_count = made.long_count;
}

} // namespace
} // namespace bpe
