#include "encode/piece_assembly.hpp"

#include <algorithm>
#include <stdexcept>

namespace bpe {

PieceAssembly::PieceAssembly(size_t piece_count, TokenBuffer out)
    : rows_{std::move(out), {}}, waiting_(piece_count) {
  rows_.offsets.push_back(0);
}

TokenBuffer PieceAssembly::add(size_t piece, TokenBuffer tokens, std::vector<uint64_t> row_ends) {
  struct Placed {
    TokenBuffer tokens;
    uint64_t start;
  };
  std::vector<Placed> placed;
  {
    const std::lock_guard lock(mutex_);
    waiting_[piece].emplace(std::move(tokens), std::move(row_ends));
    for (; first_waiting_ < waiting_.size() && waiting_[first_waiting_]; ++first_waiting_) {
      auto &[ids, ends] = *waiting_[first_waiting_];
      if (ids.size() > rows_.tokens.capacity() - token_count_)
        throw std::length_error("a normalizer made more tokens than its growth allows");
      for (const uint64_t end : ends)
        rows_.offsets.push_back(token_count_ + end);
      const uint64_t start = token_count_;
      token_count_ += ids.size();
      placed.push_back({std::move(ids), start});
      waiting_[first_waiting_].reset();
    }
  }
  uint32_t *const out = rows_.tokens.data();
  for (const Placed &ready : placed) {
    rows_.tokens.prepare(ready.start, ready.start + ready.tokens.size());
    std::copy(ready.tokens.data(), ready.tokens.data() + ready.tokens.size(), out + ready.start);
  }
  const std::lock_guard lock(mutex_);
  for (Placed &ready : placed)
    spare_.push_back(std::move(ready.tokens));
  if (spare_.empty())
    return TokenBuffer();
  TokenBuffer buffer = std::move(spare_.back());
  spare_.pop_back();
  buffer.clear();
  return buffer;
}

EncodedRows PieceAssembly::take() {
  rows_.tokens.set_end(rows_.tokens.data() + token_count_);
  rows_.tokens.shrink();
  return std::move(rows_);
}

} // namespace bpe
