// Where the pieces of a text start that hang on what is far behind them, some 4 KB at a time.
//
// A look goes on to where the automaton is settled, and from there back to see where pieces started. If it is
// not settled for long, one pass notes the states every 4 KB until it is, another one, from block to block
// back, what is to the right of each; so all looks together take a time linear in the text, and 16 bytes for
// 4 KB.
#pragma once

#include "pretokenize/automaton.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe {

class TwoWayScan {
public:
  static constexpr size_t max_bytes = 4096;

  // The automaton must outlive it.
  explicit TwoWayScan(const Automaton &automaton) : automaton_(automaton) {}

  // A text of valid UTF-8 that ends at `stop`.
  void reset(const uint8_t *stop);

  // Looks at the text from `from` on, which `state` is before; returns how many bytes are certain, one
  // character at least. A bit a byte of these: whether a piece starts there, whether it is left out; one more
  // tells the text's end, and a word more is zero. Places of a text are looked at from left to right.
  size_t look(const uint8_t *from, uint8_t state, uint64_t *starts, uint64_t *drops);

  // Before the character that starts so many bytes behind the last `from`.
  uint8_t state_before(size_t offset) const { return states_[offset]; }

private:
  struct Known {
    const uint8_t *at;
    uint16_t right;
    uint8_t state; // before it
  };

  void forward(const uint8_t *from, const uint8_t *stop, uint8_t state);
  uint16_t back(const uint8_t *from, size_t size, uint16_t right, uint64_t *starts, uint64_t *drops) const;
  void find_far(const uint8_t *from, uint8_t state);

  const Automaton &automaton_;
  const uint8_t *stop_ = nullptr;
  // Places at most max_bytes apart, ascending, and the right context at each; those before next_ are passed.
  std::vector<Known> known_;
  size_t next_ = 0;

  // Of the last pass forward: by byte the class of the character that starts there and the state before it.
  size_t size_ = 0, settled_ = 0;                          // up to where it was settled, 0: nowhere
  uint8_t classes_[max_bytes + 3], states_[max_bytes + 3]; // 3 bytes that the last character may write beyond
};

} // namespace bpe
