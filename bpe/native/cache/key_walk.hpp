// The contract of the walk that makes cache keys straight from a window of text (walk_keys.hpp).
#pragma once

#include "cache/cache_key.hpp"
#include "pretokenize/window_view.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// At most so many pretokens are taken from 64 bytes: what the vectors of AVX-512 make at a time.
constexpr size_t walk_step = 16;

// What the walk fills, by item; there must be room for walk_step items from `count` on.
struct WalkedKeys {
  size_t count, room; // items there are and may be; up to `room` all of these are written
  CacheKey *keys;
  uint32_t *hashes;
  // Of pretokens of more than CacheKey::max_bytes: place and size. Their keys and hashes are left to the
  // caller.
  const uint8_t **bytes;
  uint32_t *values;
  uint8_t *long_items; // which they are
  size_t long_count;
};

// Makes keys of the pretokens of a window from `offset` on, while there is room for walk_step more. `offset`
// moves to the end of the last. Stops before a pretoken that is not looked up whole (with characters that
// words are not made of: of more than 15 bytes, or of more than 3 that begin with one of three bytes), and
// before one that does not end within 64 bytes. Returns whether it stopped so. Bytes up to `readable` >= the
// window's end may be read.
using WalkKeys = bool (*)(const WindowView &window, size_t &offset, const uint8_t *readable, WalkedKeys &out);

} // namespace bpe
