// One match of a pattern, a character at a time: what the patterns mean, and what the block-wise walks fall
// back on.
//
// A match depends only on the text from its start on, so a walk may switch between this and any other way of
// finding ends at every end it has found. Each function returns the end of the pretoken that starts at `p` <
// `stop`; the result is greater than `p`, and nothing outside [p, stop) is read. `Rules` says which of the
// patterns it is.
#pragma once

#include "pretokenize/pretokenize.hpp"
#include "text/unicode_classes.hpp"
#include "text/utf8.hpp"

namespace bpe {
namespace {

struct Rules {
  bool prefix; // one character other than letter, number, \r, \n may stand before a word (not gpt2)
  bool cased;  // words end before an upper-case letter that follows lower case, marks are in words (o200k)
  bool end_of_text_whole; // whitespace that ends the text is one pretoken, line breaks or not
  unsigned digits;        // the most numbers in a pretoken; 0: no limit, and a space may stand before them
};

constexpr Rules rules_of(Pattern pattern) {
  switch (pattern) {
  case Pattern::gpt2:
    return {false, false, true, 0};
  case Pattern::cl100k:
    return {true, false, true, 3};
  case Pattern::o200k:
    return {true, true, false, 3};
  case Pattern::llama3:
    return {true, false, false, 3};
  case Pattern::qwen2:
    return {true, false, false, 1};
  }
  return {};
}

struct Classed {
  uint8_t kind;   // CharClass
  uint8_t length; // bytes
};

inline Classed classed(const uint8_t *p, const uint8_t *stop) {
  const Char c = read_char(p, stop);
  return {char_class(c.code_point), static_cast<uint8_t>(c.length)};
}

constexpr bool is_letter(uint8_t kind) {
  return kind == upper || kind == lower || kind == letter;
}
constexpr bool is_line_break(uint8_t byte) {
  return byte == '\n' || byte == '\r';
}

// One side of a border between two characters.
struct Side {
  uint8_t kind; // CharClass
  uint8_t byte; // the first
};

inline Side side_of(const uint8_t *p, const uint8_t *stop) {
  return {classed(p, stop).kind, *p};
}

// Whether text may be cut between two characters whatever lies around them. A match depends on nothing before
// its start, so that is safe if (1) the border is a boundary of the whole whatever comes after the character
// at the right, and (2) the pretokens before it stay the same when the text ends there.
inline bool safe_between(const Rules &rules, Side left, Side right) {
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

// The end of the longest run of characters that `belongs` accepts.
template <class Belongs> const uint8_t *run_end(const uint8_t *p, const uint8_t *stop, Belongs belongs) {
  while (p < stop) {
    const Classed c = classed(p, stop);
    if (!belongs(c.kind))
      break;
    p += c.length;
  }
  return p;
}

// The end of 's 't 'm 'd 'll 've 're at p, or p. Without case also U+017F for s, the one letter outside ASCII
// whose case folding is one of theirs.
inline const uint8_t *contraction_end(const uint8_t *p, const uint8_t *stop, bool any_case) {
  if (stop - p < 2 || *p != '\'')
    return p;
  const uint8_t fold = any_case ? 0x20 : 0;
  const uint8_t a = p[1] | fold;
  if (a == 's' || a == 't' || a == 'm' || a == 'd')
    return p + 2;
  if (stop - p < 3)
    return p;
  const uint8_t b = p[2] | fold;
  if ((a == 'l' && b == 'l') || (a == 'v' && b == 'e') || (a == 'r' && b == 'e') ||
      (any_case && p[1] == 0xC5 && p[2] == 0xBF))
    return p + 3;
  return p;
}

// How far characters of a kind go at least from p on: letters (o200k: letters without case and marks), and
// within ASCII others, numbers, whitespace, letters of one case. This one doesn't know; the walks in blocks
// have one that does.
struct PlainRuns {
  static const uint8_t *letters(const uint8_t *p, const uint8_t *) { return p; }
  static const uint8_t *others(const uint8_t *p, const uint8_t *) { return p; }
  static const uint8_t *numbers(const uint8_t *p, const uint8_t *) { return p; }
  static const uint8_t *capitals(const uint8_t *p, const uint8_t *) { return p; }
  static const uint8_t *small_letters(const uint8_t *p, const uint8_t *) { return p; }
  // line_break_end: moves behind the last line break among them.
  static const uint8_t *spaces(const uint8_t *p, const uint8_t *, const uint8_t *&) { return p; }
};

// The letters (o200k: and marks) of a word from p on, without prefix; p if there is none.
template <Pattern pattern, class Runs> const uint8_t *letters_end(const uint8_t *p, const uint8_t *stop) {
  constexpr Rules rules = rules_of(pattern);
  p = Runs::letters(p, stop);
  if (!rules.cased)
    return run_end(p, stop, is_letter);
  // [upper and caseless]* [lower and caseless]+: the first part takes all it can; if no lower-case letter
  // follows it gives back up to its last caseless one.
  const uint8_t *caseless_end = p;
  p = Runs::capitals(p, stop);
  while (p < stop) {
    const Classed c = classed(p, stop);
    if (c.kind == lower)
      return run_end(Runs::small_letters(p, stop), stop,
                     [](uint8_t kind) { return kind == lower || kind == letter || kind == mark; });
    if (c.kind != upper && c.kind != letter && c.kind != mark)
      break;
    p += c.length;
    if (c.kind != upper)
      caseless_end = p;
  }
  return caseless_end;
}

// The end of a word that starts at p with a character of `first`, or p if there is none.
template <Pattern pattern, class Runs>
const uint8_t *word_end(const uint8_t *p, const uint8_t *stop, Classed first) {
  constexpr Rules rules = rules_of(pattern);
  const bool may_prefix = !is_letter(first.kind) && first.kind != number && !is_line_break(*p);
  if (!may_prefix && !is_letter(first.kind))
    return p;
  const uint8_t *start = may_prefix ? p + first.length : p;
  const uint8_t *end = letters_end<pattern, Runs>(start, stop);
  if (!rules.cased)
    return end == start && may_prefix ? p : end;
  if (end == start) { // the first alternative failed with the prefix; without it only a mark can start a word
    if (first.kind == mark)
      end = p + first.length; // upper-case letters or nothing follow, else the above had matched
    else
      end = run_end(Runs::capitals(start, stop), stop, [](uint8_t kind) { return kind == upper; });
    if (end == start && may_prefix && first.kind != mark)
      return p;
  }
  return contraction_end(end, stop, true);
}

// The end of the whitespace at p that is a pretoken by itself.
template <Pattern pattern, class Runs> const uint8_t *whitespace_end(const uint8_t *p, const uint8_t *stop) {
  constexpr Rules rules = rules_of(pattern);
  const uint8_t *line_break_end = p, *q = Runs::spaces(p, stop, line_break_end), *last = q > p ? q - 1 : p;
  while (q < stop) {
    const Classed c = classed(q, stop);
    if (c.kind != space)
      break;
    last = q;
    q += c.length;
    if (is_line_break(*last))
      line_break_end = q;
  }
  if (q == stop && rules.end_of_text_whole)
    return q;
  if (rules.prefix && line_break_end > p)
    return line_break_end;
  return q == stop || last == p ? q : last; // the last one goes with what follows, or is left alone
}

template <Pattern pattern, class Runs = PlainRuns>
const uint8_t *match_end(const uint8_t *p, const uint8_t *stop) {
  constexpr Rules rules = rules_of(pattern);
  if (!rules.cased) {
    if (const uint8_t *end = contraction_end(p, stop, rules.prefix); end > p)
      return end;
  }
  const Classed first = classed(p, stop);
  if (rules.prefix) {
    if (const uint8_t *end = word_end<pattern, Runs>(p, stop, first); end > p)
      return end;
    if (first.kind == number) {
      const uint8_t *end = p + first.length;
      for (unsigned count = 1; count < rules.digits && end < stop; ++count) {
        const Classed c = classed(end, stop);
        if (c.kind != number)
          break;
        end += c.length;
      }
      return end;
    }
  }
  // A space may stand before a run of one kind (with a prefix rule only others are left here).
  const uint8_t *start = p;
  Classed head = first;
  if (*p == ' ' && p + 1 < stop) {
    start = p + 1;
    head = classed(start, stop);
  }
  const uint8_t kind = head.kind;
  if (kind == space || (rules.prefix && (is_letter(kind) || kind == number)))
    return whitespace_end<pattern, Runs>(p, stop);
  if (is_letter(kind))
    return letters_end<pattern, Runs>(start, stop);
  if (kind == number)
    return run_end(Runs::numbers(start, stop), stop, [](uint8_t k) { return k == number; });
  const uint8_t *end =
      run_end(Runs::others(start, stop), stop, [](uint8_t k) { return k == other || k == mark; });
  if (rules.prefix) {
    while (end < stop && (is_line_break(*end) || (rules.cased && *end == '/')))
      ++end;
  }
  return end;
}

} // namespace
} // namespace bpe
