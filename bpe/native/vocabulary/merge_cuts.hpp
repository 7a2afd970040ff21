// Where a text without a pre-tokenizer may be cut: between two characters that no merge ever joins.
//
// If no merge makes an entry that holds "ab", no merge crosses between a and b, whatever is around them: the
// texts before and after that boundary merge as if they were alone. So each pair of neighbours decides, and
// an automaton whose state is the previous character cuts the text.
//
// The tables have one class per byte at most and are fast for max_classes of them. So characters with similar
// neighbours share a class. Two classes join where any of their characters do: pieces get longer, and no ID
// changes.
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
  // The vocabulary's entries are text, and it merges bytes (not merges_characters()). steps: what is done to
  // the text before it is cut.
  MergeCuts(const Vocabulary &vocabulary, const AddedTokens &tokens,
            const std::vector<Normalizer::Kind> &steps);

  std::shared_ptr<const Automaton> automaton;
  AddedTokens tokens; // without those that the merges make of their own text
};

} // namespace bpe
