// Where a text may be cut whatever follows: between two characters whose classes alone make a boundary
// (safe_between).
//
// tests/bpe/test_pretokenize.py cuts random text and continues it with random text.
#include "pretokenize/pretokenize_scalar.hpp"

namespace bpe {

size_t last_safe_cut(Pattern pattern, const uint8_t *text, size_t size) {
  const Rules rules = rules_of(pattern);
  const uint8_t *const stop = text + size;
  Side right{};
  for (size_t at = size; at > 0;) {
    const size_t end = at;
    do
      --at;
    while (at > 0 && end - at < 4 && (text[at] & 0xC0) == 0x80);
    const Side left{classed(text + at, stop).kind, text[at]};
    if (end < size && safe_between(rules, left, right))
      return end;
    right = left;
  }
  return 0;
}

} // namespace bpe
