// Cuts for texts without a pre-tokenizer: between two characters that no merge ever joins.
//
// If no merge makes an entry that contains "ab", no merge crosses between a and b in any context: the texts
// before and after that boundary merge independently. Each pair of neighbours therefore decides, and an
// automaton with the previous character as its state cuts the text.
//
// The tables have at most one class per byte and are fast for max_classes. Characters with similar neighbours
// therefore share a class. Two classes join if any of their characters do. This makes pieces longer but
// changes no ID.
//
// Cost: about 50 ms for 260,000 entries.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/automaton.hpp"
#include "text/added_tokens.hpp"
#include "vocabulary/vocabulary.hpp"

#include <memory>
#include <vector>

namespace bpe {

struct MergeCuts {
  // The vocabulary must have text entries and merge bytes (not merges_characters()). steps: changes applied
  // to the text before it is cut.
  MergeCuts(const Vocabulary &vocabulary, const AddedTokens &tokens,
            const std::vector<Normalizer::Kind> &steps);

  std::shared_ptr<const Automaton> automaton;
  AddedTokens tokens; // without those that merges make from their own text
};

} // namespace bpe
