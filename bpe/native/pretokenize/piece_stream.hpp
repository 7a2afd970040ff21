// Where the pieces of a text start that comes in parts and may be of any length.
//
// A byte at a time, with nothing held of the text: for documents too long to be looked at in windows as a
// whole.
#pragma once

#include "pretokenize/automaton.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace bpe {

class PieceStream {
public:
  static constexpr uint64_t nowhere = ~uint64_t{0};

  explicit PieceStream(std::shared_ptr<const Automaton> automaton);

  // More of the text, valid UTF-8 cut anywhere; final: that was all of it.
  void feed(const uint8_t *text, size_t size, bool final);

  // All starts of pieces before this byte of the text are known.
  uint64_t settled() const { return settled_; }
  // Those that were not given out yet, ascending, and whether the piece is left out; at last the text's end.
  std::vector<std::pair<uint64_t, bool>> take();

private:
  static constexpr unsigned oldest = 4;

  void act(const Automaton::Actions &actions);
  uint64_t place(Automaton::Start start) const;

  const std::shared_ptr<const Automaton> automaton_;
  uint8_t state_;
  uint64_t size_ = 0, settled_ = 0;
  uint8_t lead_[4] = {}; // the bytes of a character that is cut
  unsigned lead_size_ = 0;
  uint64_t characters_[oldest] = {nowhere, nowhere, nowhere,
                                  nowhere}; // where the last ones start, the latest first
  uint64_t registers_[Automaton::most_registers];
  std::vector<std::pair<uint64_t, bool>> found_;
};

} // namespace bpe
