// Find an offset where a text may be cut, whatever follows it.
#pragma once

#include "pretokenize/automaton.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// Return p < size where the text can be cut whatever comes before and after it: for every continuation c, the
// pieces of text + c are the pieces of [text, text + p) and then of [text + p, text + size) + c. Returns the
// last offset found (in ordinary text a few characters before the end), or 0 if there is none, as in a single
// word. The text must be valid UTF-8 that starts and ends between characters.
size_t last_safe_cut(const Automaton &automaton, const uint8_t *text, size_t size);

} // namespace bpe
