// Safe cuts of texts that are normalized before they are split into pretokens.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/safe_cut.hpp"

namespace bpe {

// Like last_safe_cut: returns an offset at which the text can be normalized and split separately, whatever
// follows, or 0. normalizer: may be nullptr.
// tells_start: whether the caller passes the start of the second part to the normalizer.
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
