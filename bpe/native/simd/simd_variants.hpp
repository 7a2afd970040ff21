// The loops that are built once for each instruction set, and which of them runs on this machine.
//
// Each variant is a source of its own, compiled with its own flags, in which everything has internal linkage:
// a function shared with other sources might be kept in its AVX form and run on a machine without AVX.
#pragma once

#include "cache/key_walk.hpp"
#include "cache/make_keys.hpp"
#include "encode/character_runs.hpp"
#include "encode/character_walk.hpp"
#include "merge/long_merge.hpp"
#include "merge/short_merge.hpp"
#include "pretokenize/scan_window.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bpe {

constexpr size_t block_bytes = 64; // what a variant works on at a time
constexpr size_t max_pretoken_bytes = UINT32_MAX;

struct SimdVariant {
  // Writes the ends of pretokens from `at` on, as offsets from `origin` <= at and none above
  // max_pretoken_bytes, until `room` (>= block_bytes) of them might be exceeded or the text is finished. `at`
  // moves to the last end; the result is their number, 0 only if the text is finished or the next end is too
  // far. The text must be valid UTF-8.
  using Walk = size_t (*)(const uint8_t *origin, const uint8_t *&at, const uint8_t *stop, uint32_t *ends,
                          size_t room);

  const char *name;
  Walk walks[5]; // by Pattern
  WalkKeys key_walks[5];
  CharacterWalks character_walks[5];

  // The end of a part of [text + start, text + size) that is valid UTF-8 and ends with a character;
  // block_bytes or so short of the first fault or the end. Needs start >= 3, a character's start, and valid
  // text before it. Null: none.
  size_t (*valid_prefix)(const uint8_t *text, size_t start, size_t size);

  ScanWindow scan_window;
  MakeKeys make_keys;
  FindCharacters find_characters;
  EmitCharacters emit_characters;
  MergeShortPretokens merge_short_pretokens;
  MergeLongPretoken merge_long_pretoken;
  MergeLongPretokens merge_long_pretokens;
};

// The best variant of this machine, or the one chosen. Any thread.
const SimdVariant &simd_variant();
// Names of those this machine can run, best first; "portable" is always the last.
std::vector<std::string> simd_variant_names();
// Applies to what is constructed afterwards. std::invalid_argument naming the value and what can run here.
void choose_simd_variant(const std::string &name);

// Each in its own source; the getters are plain code, so they may be called on any machine.
extern const SimdVariant portable_variant;
extern const SimdVariant avx2_variant;
extern const SimdVariant avx512_variant;
extern const SimdVariant neon_variant;

} // namespace bpe
