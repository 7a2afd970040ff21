// The pretoken at the end of a text that what follows has a say in, so that one too long to be held can be
// given up bit by bit.
//
// A match scans runs of characters of a kind; it is certain once all that it has scanned ends well before the
// text does. Of the first one that is not, `settled` is how far it reaches at least: in most runs to the end
// of the text, but whitespace gives back its last character or all behind its last line break, and o200k's
// capitals may have to wait for what ends them. What such a scan remembers of the run behind it is little: a
// line break, a lower-case letter, that it is among others. So the run's beginning can be replaced by a few
// characters, `head`, and the last one that is settled. tests/bpe/test_open_pretoken.py goes through all
// short texts and what may follow them.
#include "pretokenize/pretokenize_scalar.hpp"

#include <algorithm>

namespace bpe {

namespace {

// Behind a run at most a contraction is looked at: three bytes.
constexpr ptrdiff_t certain_bytes = 8;

struct Scan {
  const uint8_t *end;     // of the match, if the text ends at `stop`
  const uint8_t *reach;   // behind the last run that was scanned
  const uint8_t *settled; // if the run goes on: the match ends no earlier
  const char *head;
};

Scan scan_whitespace(const Rules &rules, const uint8_t *p, const uint8_t *end, const uint8_t *run_stop) {
  const uint8_t *line_break_end = p, *last = run_stop;
  do
    --last;
  while (last > p && (*last & 0xC0) == 0x80);
  if (rules.prefix) {
    for (const uint8_t *q = run_stop; q > p; --q)
      if (is_line_break(q[-1])) {
        line_break_end = q;
        break;
      }
  }
  return {end, run_stop, line_break_end > p ? line_break_end : last, ""};
}

// A word of o200k that starts at p, of whose letters the first is at `start`; no word: the end is p.
Scan scan_cased_word(const uint8_t *p, const uint8_t *start, const uint8_t *stop, const uint8_t *end,
                     Classed first) {
  const uint8_t *q = start, *caseless_end = start;
  while (q < stop) {
    const Classed c = classed(q, stop);
    if (c.kind == lower) {
      q = run_end(q, stop, [](uint8_t kind) { return kind == lower || kind == letter || kind == mark; });
      return {end, q, q, "a"};
    }
    if (c.kind != upper && c.kind != letter && c.kind != mark)
      break;
    q += c.length;
    if (c.kind != upper)
      caseless_end = q;
  }
  if (caseless_end > start)
    return {end, q, caseless_end, ""};
  if (first.kind == mark) // by itself, or before capitals that a lower-case letter ends
    return {end, q, start, ""};
  return {q > start ? end : p, q, q, ""};
}

template <Pattern pattern> Scan scan(const uint8_t *p, const uint8_t *stop) {
  constexpr Rules rules = rules_of(pattern);
  const uint8_t *const end = match_end<pattern>(p, stop);
  const Classed first = classed(p, stop);
  if (first.kind == space) {
    const uint8_t *const q = run_end(p, stop, [](uint8_t kind) { return kind == space; });
    if (end <= q)
      return scan_whitespace(rules, p, end, q);
  }
  if (!rules.cased && contraction_end(p, stop, rules.prefix) > p)
    return {end, end, p, ""};
  const bool may_prefix =
      rules.prefix ? !is_letter(first.kind) && first.kind != number && !is_line_break(*p) : *p == ' ';
  if (may_prefix || is_letter(first.kind)) {
    const uint8_t *const start = may_prefix ? p + first.length : p;
    if (rules.cased) {
      if (const Scan word = scan_cased_word(p, start, stop, end, first); word.end > p)
        return word;
    } else if (const uint8_t *const q = run_end(start, stop, is_letter); q > start) {
      return {end, q, q, ""};
    }
  }
  const uint8_t *const start = *p == ' ' ? p + 1 : p;
  if (first.kind == number || (start < stop && !rules.prefix && classed(start, stop).kind == number)) {
    return {end, end, rules.digits > 0 ? p : end, ""};
  }
  const uint8_t *const q = run_end(start, stop, [](uint8_t kind) { return kind == other || kind == mark; });
  return {end, end, end, end > q ? "!!\n" : "!!"};
}

template <Pattern pattern> OpenPretoken find_open(const uint8_t *text, size_t size) {
  const uint8_t *const stop = text + size;
  const uint8_t *p = text;
  while (p < stop) {
    const Scan found = scan<pattern>(p, stop);
    if (stop - std::max(found.reach, found.end) < certain_bytes) {
      const bool goes_on = found.reach == stop;
      return {static_cast<size_t>(p - text), static_cast<size_t>((goes_on ? found.settled : p) - text),
              goes_on ? found.head : ""};
    }
    p = found.end;
  }
  return {size, size, ""};
}

} // namespace

OpenPretoken open_pretoken(Pattern pattern, const uint8_t *text, size_t size) {
  switch (pattern) {
  case Pattern::gpt2:
    return find_open<Pattern::gpt2>(text, size);
  case Pattern::cl100k:
    return find_open<Pattern::cl100k>(text, size);
  case Pattern::o200k:
    return find_open<Pattern::o200k>(text, size);
  case Pattern::llama3:
    return find_open<Pattern::llama3>(text, size);
  case Pattern::qwen2:
    return find_open<Pattern::qwen2>(text, size);
  }
  return {size, size, ""};
}

} // namespace bpe
