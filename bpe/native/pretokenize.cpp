#include "pretokenize.hpp"

#include "pretokenize_scalar.hpp"

#include <stdexcept>
#include <string>

namespace bpe {

namespace {

constexpr size_t batch_spans = 4096; // 16 KiB of ends: they and the text they cover stay in the first-level cache
constexpr size_t max_pretoken_bytes = UINT32_MAX;

// Write ends of pretokens from `p` on, as offsets from `origin` and up to max_pretoken_bytes of it, until `ends` is
// full or the text is finished. Returns how many; `p` moves to the last of them.
using Walk = size_t (*)(const uint8_t *origin, const uint8_t *&p, const uint8_t *stop, uint32_t *ends, size_t room);

template <Pattern pattern>
size_t walk_scalar(const uint8_t *origin, const uint8_t *&p, const uint8_t *stop, uint32_t *ends, size_t room) {
  size_t count = 0;
  while (count < room && p < stop) {
    const uint8_t *end = match_end<pattern>(p, stop);
    if (static_cast<size_t>(end - origin) > max_pretoken_bytes)
      break;
    ends[count++] = static_cast<uint32_t>(end - origin);
    p = end;
  }
  return count;
}

Walk walk_of(Pattern pattern) {
  switch (pattern) {
  case Pattern::gpt2:
    return walk_scalar<Pattern::gpt2>;
  case Pattern::cl100k:
    return walk_scalar<Pattern::cl100k>;
  case Pattern::o200k:
    return walk_scalar<Pattern::o200k>;
  case Pattern::llama3:
    return walk_scalar<Pattern::llama3>;
  case Pattern::qwen2:
    return walk_scalar<Pattern::qwen2>;
  }
  throw std::invalid_argument("unknown pattern");
}

} // namespace

Pattern pattern_from_name(std::string_view name) {
  constexpr std::pair<std::string_view, Pattern> names[] = {{"gpt2", Pattern::gpt2},
                                                            {"cl100k", Pattern::cl100k},
                                                            {"o200k", Pattern::o200k},
                                                            {"llama3", Pattern::llama3},
                                                            {"qwen2", Pattern::qwen2}};
  for (const auto &[known, pattern] : names) {
    if (known == name)
      return pattern;
  }
  throw std::invalid_argument("unknown pattern '" + std::string(name) +
                              "'; the native ones are gpt2, cl100k, o200k, llama3 and qwen2");
}

struct Pretokenizer::State {
  Walk walk;
  const uint8_t *p = nullptr, *stop = nullptr;
  uint32_t ends[batch_spans];
};

Pretokenizer::Pretokenizer(Pattern pattern) : state_(new State{walk_of(pattern)}) {}
Pretokenizer::~Pretokenizer() = default;

void Pretokenizer::reset(const uint8_t *text, size_t size) {
  state_->p = text;
  state_->stop = text + size;
}

Spans Pretokenizer::next() {
  const uint8_t *origin = state_->p;
  const size_t count = state_->walk(origin, state_->p, state_->stop, state_->ends, batch_spans);
  if (count == 0 && origin < state_->stop)
    throw std::length_error("a pretoken of 4 GiB or more; cut the text into documents");
  return {origin, state_->ends, count};
}

size_t last_safe_cut(Pattern, const uint8_t *, size_t) { return 0; }

} // namespace bpe
