// Loops that are compiled once per instruction set, and the choice of the variant for this machine.
//
// Each variant is one source with its own compiler flags, in which everything has internal linkage.
// Otherwise, the linker might keep the AVX version of a shared function and run it on a machine without AVX.
#pragma once

#include "cache/key_walk.hpp"
#include "encode/character_walk.hpp"
#include "merge/merge_pretokens.hpp"
#include "pretokenize/scan_window.hpp"
#include "text/character_set.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bpe {

constexpr size_t block_bytes = 64; // bytes that a variant processes per step

struct SimdVariant {
  const char *name;
  ScanWindow scan_window;
  WalkKeys walk_keys;
  WalkCharacters walk_characters;

  // Return the end of a prefix of the non-empty text[0, size) that is valid UTF-8 and ends with a complete
  // character: `size`, or about block_bytes before the first error. May be null.
  size_t (*valid_prefix)(const uint8_t *text, size_t size);

  // Return the first offset in the non-empty text[start, size) of a pair of first bytes, or `size`. A zero
  // byte is assumed after the text.
  size_t (*find_first_two)(const FirstTwoBytes &pairs, const uint8_t *text, size_t start, size_t size);

  // The same for a character of a set; see character_set.hpp.
  size_t (*find_in_set)(const CharacterSet &set, const uint8_t *text, size_t start, size_t size);

  FindCharacters find_characters;
  EmitCharacters emit_characters;
  MergePretokens merge_pretokens;
};

// Return the chosen variant, or the best one for this machine. Thread-safe.
const SimdVariant &simd_variant();
// Return the variants that this machine can run, best first. "portable" is always last.
std::vector<std::string> simd_variant_names();
// Choose the variant for objects constructed from now on. Throws std::invalid_argument with the name and the
// available variants.
void choose_simd_variant(const std::string &name);

// Defined in one source each. The getters are plain code, so they are safe to call on any machine.
extern const SimdVariant portable_variant;
extern const SimdVariant avx2_variant;
extern const SimdVariant avx512_variant;
extern const SimdVariant neon_variant;

} // namespace bpe
