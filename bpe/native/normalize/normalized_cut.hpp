// Where a text that is normalized before it is pretokenized may be cut.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/safe_cut.hpp"

namespace bpe {

// As last_safe_cut: a place at which the pretokens of the normalized text are those of the parts before and
// behind, each normalized by itself, whatever follows; 0: none was found. normalizer: nullptr for none.
// tells_start: the normalizer is told that the part behind is one.
inline size_t last_normalized_cut(const Automaton &automaton, const Normalizer *normalizer,
                                  const uint8_t *text, size_t size, bool tells_start = false) {
  if (normalizer && !(tells_start ? normalizer->has_borders() : normalizer->same_for_parts()))
    return 0;
  size_t cut = last_safe_cut(automaton, text, size);
  const std::string_view view(reinterpret_cast<const char *>(text), size);
  while (cut > 0 && normalizer && !normalizer->is_fixed_border(view, cut))
    cut = last_safe_cut(automaton, text, cut);
  return cut;
}

} // namespace bpe
