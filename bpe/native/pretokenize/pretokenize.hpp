// Pretoken boundaries of one text, in blocks.
//
// A Pretokenizer walks one text (no special tokens in it) and hands out the ends of its pretokens, which lie
// end to end and cover the text. The patterns are those of bpe/patterns.py. The text must be valid UTF-8;
// nothing is read outside [text, text + size). Not shared between threads; reset() is cheap, so one object
// serves many short texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace bpe {

enum class Pattern : uint8_t { gpt2, cl100k, o200k, llama3, qwen2 };

// Throws std::invalid_argument naming the value and the known names.
Pattern pattern_from_name(std::string_view name);

// The next pretokens: number i is origin + [i == 0 ? 0 : ends[i - 1], ends[i]). Valid until the next call.
struct Spans {
  const uint8_t *origin;
  const uint32_t *ends;
  size_t count; // 0: the text is finished
};

class Pretokenizer {
public:
  explicit Pretokenizer(Pattern pattern);
  ~Pretokenizer();
  Pretokenizer(const Pretokenizer &) = delete;
  Pretokenizer &operator=(const Pretokenizer &) = delete;

  void reset(const uint8_t *text, size_t size);
  // Up to max_spans at a time, from block_spans on. Throws std::length_error for a pretoken of 4 GiB or more.
  Spans next(size_t max_spans = batch_spans);
  static constexpr size_t batch_spans = 4096; // 16 KiB of ends stay in the first-level cache
  static constexpr size_t block_spans = 64;

private:
  struct State;
  std::unique_ptr<State> state_;
};

// A p < size at which the text can be cut whatever follows: for every continuation c, the pretokens of text +
// c are those of [text, text + p) and then those of [text + p, text + size) + c. The last one that two
// neighbouring characters make certain (in ordinary text some words from the end); 0 if there is none, as in
// a single word. Valid UTF-8. Reads backwards from the end to p.
size_t last_safe_cut(Pattern pattern, const uint8_t *text, size_t size);

// The first pretoken of a text that its continuation may change; those before `start` are certain, also if
// nothing follows. Whatever follows, [start, settled) lies in one pretoken. If the last character before
// `settled` begins at p > start, then head + text from p on stands for the text from `start` on: whatever
// follows, the first pretoken ends at the same place, and so do all others.
// Valid UTF-8. Linear, a character at a time.
struct OpenPretoken {
  size_t start, settled;
  const char *head;
};
OpenPretoken open_pretoken(Pattern pattern, const uint8_t *text, size_t size);

} // namespace bpe
