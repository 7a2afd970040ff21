#include "pretokenize/pretokenize.hpp"

#include "simd/simd_variants.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace bpe {

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
  explicit State(SimdVariant::Walk walk) : walk(walk) {}

  SimdVariant::Walk walk;
  const uint8_t *p = nullptr, *stop = nullptr;
  uint32_t ends[Pretokenizer::batch_spans];
};

Pretokenizer::Pretokenizer(Pattern pattern)
    : state_(new State(simd_variant().walks[static_cast<size_t>(pattern)])) {}
Pretokenizer::~Pretokenizer() = default;

void Pretokenizer::reset(const uint8_t *text, size_t size) {
  state_->p = text;
  state_->stop = text + size;
}

Spans Pretokenizer::next(size_t max_spans) {
  static_assert(block_spans >= block_bytes);
  const uint8_t *origin = state_->p;
  const size_t count = state_->walk(origin, state_->p, state_->stop, state_->ends, max_spans);
  if (count == 0 && origin < state_->stop)
    throw std::length_error("a pretoken of 4 GiB or more; cut the text into documents");
  return {origin, state_->ends, count};
}

} // namespace bpe
