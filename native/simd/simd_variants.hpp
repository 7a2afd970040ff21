// The loops that are built once for each instruction set, and which of them runs on this machine.
//
// Each variant is a source of its own, compiled with its own flags, in which everything has internal linkage:
// a function shared with other sources might be kept in its AVX form and run on a machine without AVX.
#pragma once

#include "cache/key_walk.hpp"
#include "encode/character_runs.hpp"
#include "encode/character_walk.hpp"
#include "merge/long_merge.hpp"
#include "merge/short_merge.hpp"
#include "pretokenize/scan_window.hpp"
#include "text/character_set.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bpe {

constexpr size_t block_bytes = 64; // what a variant works on at a time

struct SimdVariant {
  const char *name;
  ScanWindow scan_window;
  WalkKeys walk_keys;
  WalkCharacters walk_characters;

  // The end of a part of text[0, size), not empty, that is valid UTF-8 and ends with a character: `size`, or
  // block_bytes or so short of the first fault. Null: none.
  size_t (*valid_prefix)(const uint8_t *text, size_t size);

  // The first place of text[start, size), not empty, that has a pair, a zero byte behind the text counted; or
  // `size`.
  size_t (*find_first_two)(const FirstTwoBytes &pairs, const uint8_t *text, size_t start, size_t size);

  // The same for a character of a set; see character_set.hpp.
  size_t (*find_in_set)(const CharacterSet &set, const uint8_t *text, size_t start, size_t size);

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
