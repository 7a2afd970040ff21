// Later phases of a pre-tokenizer, applied to the pieces of its first automaton: changes and further cuts.
//
// After a component that changes the text of a piece (a byte alphabet, a space in front), the text to cut is
// no longer the original. Such a component and the following ones, up to the next of its kind, form a phase:
// each piece of the previous phase is changed separately and cut by the phase's automaton.
#pragma once

#include "normalize/byte_buffer.hpp"
#include "normalize/normalizer.hpp"
#include "pretokenize/automaton.hpp"
#include "pretokenize/text_window.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

namespace bpe {

struct LaterPhases {
  struct Phase {
    std::shared_ptr<const Normalizer> change; // may be null
    std::shared_ptr<const Automaton> automaton;
  };
  std::vector<Phase> phases;
  bool from_alphabet = false;    // finally, the characters of a piece are in the byte alphabet
  bool asks_for_input = false;   // whether the result depends on a piece starting an input
  std::array<bool, 256> stays{}; // a piece of only these bytes stays one piece

  // Return how many of the first bytes are in `stays`.
  size_t staying(const uint8_t *bytes, size_t size) const {
    size_t i = 0;
    while (i < size && stays[bytes[i]])
      ++i;
    return i;
  }
  bool leaves(const uint8_t *piece, size_t size) const { return staying(piece, size) == size; }
};

// Applies the phases to pieces of the first automaton. Not thread-safe.
class LaterPieces {
public:
  // The phases must outlive it.
  explicit LaterPieces(const LaterPhases &phases);

  // Apply the phases to a piece of valid UTF-8; bytes up to `readable` may be read. The resulting pieces are
  // in text(), concatenated, and their ends in ends(). input_bytes: how many of its first bytes belong to the
  // first character of an input.
  void cut(std::string_view piece, const uint8_t *readable, size_t input_bytes);
  const ByteBuffer &text() const { return text_; }
  const std::vector<size_t> &ends() const { return ends_; }

  // Copy the pieces to memory that stays in place until it is full; calls finish() before reusing it. Returns
  // the start of the copy; bytes up to kept_readable() may be read.
  template <class Finish> const uint8_t *keep(Finish finish) {
    if (kept_.capacity() - kept_.size() < text_.size()) {
      finish();
      kept_.clear();
      kept_.reserve(std::max(kept_bytes, text_.size()));
    }
    const uint8_t *const start = kept_.data() + kept_.size();
    kept_.append(text_.data(), text_.size());
    return start;
  }
  const uint8_t *kept_readable() const { return kept_.readable(); }
  void reset(); // invalidates all that was kept

private:
  static constexpr size_t kept_bytes = size_t{256} << 10, most_kept_bytes = size_t{4} << 20;
  struct Own { // state of one phase
    Normalizer::Scratch scratch;
    std::unique_ptr<TextWindow> window;
  };

  void run(size_t number, std::string_view text, const uint8_t *readable, size_t input_bytes);
  void give(std::string_view piece);

  const LaterPhases &phases_;
  std::deque<Own> own_;
  ByteBuffer text_, kept_;
  std::vector<size_t> ends_;
};

} // namespace bpe
