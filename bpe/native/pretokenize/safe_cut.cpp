// The states of an automaton that began in all of its states soon become one: text tells by itself where it
// is. From there on the states are those that any text before would have led to. A place is safe where a
// piece starts, where the text before would have had nothing pending were it to end there, and where a new
// text would go on through the same states.
#include "pretokenize/safe_cut.hpp"

#include <algorithm>
#include <vector>

namespace bpe {

namespace {

bool starts_character(uint8_t byte) {
  return (byte & 0xC0) != 0x80;
}

class Walk {
public:
  Walk(const Automaton &automaton, const uint8_t *text) : automaton_(automaton), text_(text) {}

  uint8_t behind(uint8_t state, size_t at) const {
    const uint8_t byte = text_[at];
    uint8_t kind = automaton_.classes.of_byte[byte];
    if (kind == CharacterClasses::unclear)
      kind = automaton_.classes.of_character(text_ + at);
    return automaton_.then[kind * Automaton::row + state];
  }

  // The states behind the bytes of [start, stop), from where they are known on; `start` moves there.
  std::vector<uint8_t> known_states(size_t &start, size_t stop) const {
    std::vector<uint8_t> all(automaton_.at_end.size());
    for (size_t state = 0; state < all.size(); ++state)
      all[state] = static_cast<uint8_t>(state);
    size_t at = start;
    for (; at < stop && all.size() > 1; ++at) {
      for (uint8_t &state : all)
        state = behind(state, at);
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
    }
    std::vector<uint8_t> states;
    start = at;
    if (all.size() > 1)
      return states;
    states.push_back(all[0]); // before `start`
    for (; at < stop; ++at)
      states.push_back(behind(states.back(), at));
    return states;
  }

  bool is_safe(size_t at, size_t stop, uint8_t before, uint8_t after) const {
    if (!starts_here(after) || automaton_.oldest_pending[before].reg != Automaton::nothing ||
        automaton_.at_end[before].start_count != 0)
      return false;
    uint8_t anew = behind(automaton_.initial, at);
    if (!starts_here(anew))
      return false;
    while (anew != after) {
      if (++at == stop)
        return false;
      anew = behind(anew, at);
      after = behind(after, at);
      if (anew != after && (!is_silent(anew) || !is_silent(after)) &&
          !(starts_here(anew) && starts_here(after)))
        return false;
    }
    return true;
  }

private:
  bool starts_here(uint8_t state) const {
    return state >= automaton_.both_end && state < automaton_.here_end;
  }
  bool is_silent(uint8_t state) const {
    return state >= automaton_.here_end && state < automaton_.silent_end;
  }

  const Automaton &automaton_;
  const uint8_t *text_;
};

} // namespace

size_t last_safe_cut(const Automaton &automaton, const uint8_t *text, size_t size) {
  const Walk walk(automaton, text);
  for (size_t window = 256, stop = size;; window *= 4) {
    size_t from = size - std::min(size, window);
    while (from > 0 && !starts_character(text[from]))
      --from;
    size_t start = from;
    const std::vector<uint8_t> states = walk.known_states(start, size);
    for (size_t at = stop; at-- > start;) {
      if (at < size && starts_character(text[at]) && !states.empty() &&
          walk.is_safe(at, size, states[at - start], states[at + 1 - start]))
        return at;
    }
    if (from == 0)
      return 0;
    stop = std::min(stop, std::max(start, from));
  }
}

} // namespace bpe
