// Leads of characters that words are not made of: E2..E9 and EE.., punctuation, kana, ideographs, emoji.
//
// What scripts with words write comes again as it is: it is looked up whole in the cache, be it Cyrillic,
// Devanagari or Hangul, not character by character. Chinese and Japanese run on, and nearly all of it is new.
#pragma once

#include <cstdint>

namespace bpe {

static constexpr bool is_wordless_lead(uint8_t byte) {
  return byte >= 0xE2 && (byte < 0xEA || byte > 0xED);
}

// The same of eight bytes: the top bit of each.
static constexpr uint64_t wordless_leads(uint64_t eight) {
  const uint64_t at_least_e2 =
      eight & eight << 1 & eight << 2 & (eight << 3 | eight << 4 | eight << 5 | eight << 6);
  // The lower three bits of EA..ED are 2 to 5: two more, and the third is set.
  const uint64_t hangul =
      ~(eight << 3) & eight << 4 & ((eight & 0x0707070707070707) + 0x0202020202020202) << 5;
  return at_least_e2 & ~hangul & 0x8080808080808080;
}

} // namespace bpe
