// What a pre-tokenizer does to the pieces of its first automaton: changes of each and further cuts.
//
// From a component on that changes the text of a piece (a byte alphabet, a space in front), what is cut is no
// longer the text itself. Such a component and those behind it, up to the next of its kind, are a phase:
// each piece of the phase before is changed by itself and cut by an automaton of its own.
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
  bool from_alphabet = false;    // in the end the characters of a piece are those of the byte alphabet
  bool asks_for_input = false;   // whether it makes a difference that a piece begins an input
  std::array<bool, 256> stays{}; // a piece of these bytes alone is a piece in the end

  // How many of the first bytes are such.
  size_t staying(const uint8_t *bytes, size_t size) const {
    size_t i = 0;
    while (i < size && stays[bytes[i]])
      ++i;
    return i;
  }
  bool leaves(const uint8_t *piece, size_t size) const { return staying(piece, size) == size; }
};

// Takes pieces of the first automaton; for one thread.
class LaterPieces {
public:
  // The phases must outlive it.
  explicit LaterPieces(const LaterPhases &phases);

  // What becomes of a piece of valid UTF-8, of which bytes up to `readable` may be read: in text(), the
  // pieces end to end, which end at ends(). input_bytes: so many of its first bytes are those of the first
  // character of an input.
  void cut(std::string_view piece, const uint8_t *readable, size_t input_bytes);
  const ByteBuffer &text() const { return text_; }
  const std::vector<size_t> &ends() const { return ends_; }

  // The same, copied to where it stays until the room is used up, which finish() is called before. Returns
  // its start; bytes up to kept_readable() may be read.
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
  void reset(); // nothing that was kept is needed any more

private:
  static constexpr size_t kept_bytes = size_t{256} << 10, most_kept_bytes = size_t{4} << 20;
  struct Own { // of a phase
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
