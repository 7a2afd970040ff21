// Where a text may be cut whatever follows: between two characters whose classes alone make a boundary.
//
// A match depends on nothing before its start, so a cut at p is safe if (1) p is a boundary of the whole
// whatever comes after the character at p, and (2) the pretokens before p stay the same when the text ends at
// p. tests/bpe/test_pretokenize.py cuts random text and continues it with random text.
#include "pretokenize/pretokenize_scalar.hpp"

namespace bpe {

namespace {

struct Side {
  uint8_t kind; // CharClass
  uint8_t byte; // the first
};

bool safe_between(const Rules &rules, Side left, Side right) {
  const auto is_other = [&](Side side) { return side.kind == other || (!rules.cased && side.kind == mark); };
  const bool letter_left = is_letter(left.kind), letter_right = is_letter(right.kind);
  if (left.kind ==
      space) // a line break ends its whitespace, except for gpt2, where it would stay with the text's end
    return rules.prefix && is_line_break(left.byte) && right.kind != space && right.byte != '/';
  if (letter_left) // the end of a word; o200k's go on with a mark or a contraction
    return right.kind == space || right.kind == number ||
           (is_other(right) && (!rules.cased || right.byte != '\''));
  if (left.kind == number)
    return right.kind != number;
  // Others, and o200k's marks, which may be in a word or among others.
  if (right.kind == space)
    return !rules.prefix || !is_line_break(right.byte);
  if (right.kind == number)
    return true;
  // gpt2 has no prefixes, but contractions.
  return !rules.prefix && letter_right && left.byte != '\'';
}

} // namespace

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
