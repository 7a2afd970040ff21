// Where a text may be cut whatever follows it.
#pragma once

#include "pretokenize/automaton.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// A p < size at which the text can be cut whatever follows, and whatever came before it: for every
// continuation c, the pieces of text + c are those of [text, text + p) and then those of [text + p, text +
// size) + c. The last one found (in ordinary text some characters from the end); 0 if there is none, as in a
// single word. Valid UTF-8 that starts and ends between characters.
size_t last_safe_cut(const Automaton &automaton, const uint8_t *text, size_t size);

} // namespace bpe
