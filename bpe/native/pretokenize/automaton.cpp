#include "pretokenize/automaton.hpp"

#include <bit>

namespace bpe {

void Automaton::complete(size_t class_count) {
  steps.class_count = class_count;
  classes.page_of.resize(CharacterClasses::page_count);

  const uint8_t within = static_cast<uint8_t>(class_count - 1);
  for (unsigned byte = 0; byte < 256; ++byte)
    classes.of_byte[byte] = byte < 0x80 ? classes.pages[classes.page_of[byte / 64]][byte % 64] : within;
  for (unsigned lead = 0xC0; lead < 256; ++lead) {
    const unsigned first = lead < 0xE0 ? lead & 31 : lead < 0xF0 ? (lead & 15) << 6 : (lead & 7) << 12;
    const unsigned count = lead < 0xE0 ? 1 : lead < 0xF0 ? 64 : 4096;
    const uint8_t one = classes.pages[classes.page_of[first]][0];
    bool clear = true;
    for (unsigned page = first; page < first + count; ++page)
      for (const uint8_t each : classes.pages[classes.page_of[page]])
        clear &= each == one;
    classes.of_byte[lead] = clear ? one : CharacterClasses::unclear;
  }
  if (two_way.rights == 0)
    fill_steps();
}

// Return the actions due in a state as bits of Steps.
unsigned Automaton::due(uint8_t state) const {
  if (state >= silent_end)
    return Steps::acting;
  if (state >= here_end)
    return 0;
  return (state < both_end ? Steps::before : 0u) | (state >= before_end ? Steps::here : 0u);
}

// Build steps of two bytes if row indices fit into 16 bits: larger tables would not stay in the first-level
// cache.
void Automaton::fill_steps() {
  const size_t states = silent_end - here_end, class_count = steps.class_count;
  steps.row_shift = static_cast<unsigned>(std::bit_width((states - 1) / Steps::row_unit));
  steps.bytes = (class_count * class_count) << steps.row_shift <= size_t{1} << 16 ? 2 : 1;
  const size_t row_entries = Steps::row_unit << steps.row_shift;
  const auto step = [&](uint8_t &state, size_t kind) {
    const uint8_t behind = then[kind * row + state];
    state = quiet(behind);
    return due(behind);
  };
  const size_t first_classes = steps.bytes == 2 ? class_count : 1;
  steps.entries.assign(first_classes * class_count * row_entries, 0);
  for (size_t place = 0; place < steps.entries.size(); ++place) {
    const size_t kinds = place / row_entries;
    size_t number = place % row_entries;
    if (number >= states)
      continue;
    uint8_t state = static_cast<uint8_t>(here_end + number);
    unsigned low = 0, high = 0;
    if (steps.bytes == 2) {
      low = step(state, kinds / class_count);
      high = step(state, kinds % class_count);
    } else {
      low = step(state, kinds);
    }
    number = state - here_end;
    steps.entries[place] = static_cast<uint32_t>(low | (number & 31) | (high | number >> 5) << 8 |
                                                 number * sizeof(uint32_t) << 16);
  }
}

} // namespace bpe
