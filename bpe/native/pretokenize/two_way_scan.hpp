// Find starts of pieces that depend on text far after them, about 4 KB at a time.
//
//     forward:  states[i] = the state before character i, up to a settled state
//     backward: right = the right context there; for each character i, from the last to the first:
//         (right, starts, drops) = before[class of character i][states[i]][right]
//
// A scan reads forward to a settled state of the automaton, then backward to find the starts of pieces. If no
// state is settled for long, one pass records the states every 4 KB until one is, and another pass records
// the right contexts block by block backward. All scans together take linear time and 16 bytes per 4 KB.
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

  // Set a text of valid UTF-8 that ends at `stop`.
  void reset(const uint8_t *stop);

  // Scan the text from `from` with `state` before it, and return how many bytes are certain, at least one
  // character. Sets one bit per byte: whether a piece starts there, and whether it is dropped. One more bit
  // is for the end of the text, and one more word is zero. Texts must be scanned from left to right.
  size_t look(const uint8_t *from, uint8_t state, uint64_t *starts, uint64_t *drops);

  // Return the state before the character that starts `offset` bytes after the last `from`.
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
  // Offsets at most max_bytes apart, ascending, with the right context at each. Offsets before next_ are
  // done.
  std::vector<Known> known_;
  size_t next_ = 0;

  // Of the last forward pass: per byte, the class of the character that starts there and the state before it.
  size_t size_ = 0, settled_ = 0; // settled_: where it was settled; 0: nowhere
  // the last character may write 3 bytes beyond the end
  uint8_t classes_[max_bytes + 3], states_[max_bytes + 3];
};

} // namespace bpe
