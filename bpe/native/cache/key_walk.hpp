// The contract of the function that computes cache keys directly from a window of text (walk_keys.hpp).
#pragma once

#include "cache/cache_key.hpp"
#include "pretokenize/window_view.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// Maximum number of pretokens processed per 64 bytes: as many as AVX-512 vectors handle at once.
constexpr size_t walk_step = 16;

// Output arrays, indexed by item. They must have room for walk_step items after `count`.
struct WalkedKeys {
  size_t count, room; // number of items, and the maximum; all entries up to `room` may be written
  CacheKey *keys;
  uint32_t *hashes;
  // Offset and size of pretokens longer than CacheKey::max_bytes. The caller computes their keys and hashes.
  const uint8_t **bytes;
  uint32_t *values;
  uint8_t *long_items; // indices of these pretokens
  size_t long_count;
};

// Compute keys of the pretokens of a window from `offset` while there is room for walk_step more, and advance
// `offset` to the end of the last one. Stops before a pretoken that is not looked up whole and before one
// that does not end within 64 bytes, and returns whether it stopped for one of these reasons. Pretokens with
// characters outside words are not looked up whole if they have more than 15 bytes, or more than 3 and start
// with a three-byte character. Bytes up to `readable`, at or after the end of the window, may be read.
using WalkKeys = bool (*)(const WindowView &window, size_t &offset, const uint8_t *readable, WalkedKeys &out);

} // namespace bpe
