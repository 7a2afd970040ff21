// Lead bytes of characters outside words: E2..E9 and EE.., which cover punctuation, kana, ideographs and
// emoji.
//
// Words in scripts such as Cyrillic, Devanagari or Hangul repeat, so each word is looked up whole in the
// cache, not character by character. Chinese and Japanese have no spaces, and nearly every run of text is
// new.
#pragma once

#include <cstdint>

namespace bpe {

static constexpr bool is_wordless_lead(uint8_t byte) {
  return byte >= 0xE2 && (byte < 0xEA || byte > 0xED);
}

// The same for eight bytes: the top bit of each.
static constexpr uint64_t wordless_leads(uint64_t eight) {
  const uint64_t at_least_e2 =
      eight & eight << 1 & eight << 2 & (eight << 3 | eight << 4 | eight << 5 | eight << 6);
  // The lower three bits of EA..ED are 2 to 5: adding two sets the third.
  const uint64_t hangul =
      ~(eight << 3) & eight << 4 & ((eight & 0x0707070707070707) + 0x0202020202020202) << 5;
  return at_least_e2 & ~hangul & 0x8080808080808080;
}

} // namespace bpe
