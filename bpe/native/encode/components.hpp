// Settings for cutting and normalizing texts before their pretokens are merged.
//
// Files with text entries replace each space with U+2581 in a last step, so entries contain U+2581 and the
// text to merge has no space. If that is certain, the core exchanges the two in entries and in all
// components: texts keep their spaces, and only the few U+2581 in them are replaced. No ID changes, and most
// texts need no normalizing.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/automaton.hpp"
#include "text/added_tokens.hpp"
#include "vocabulary/vocabulary.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bpe {

// The components as defined in the tokenizer's file.
struct FileComponents {
  AddedTokens added_tokens; // their values are the IDs
  // Cuts texts after `changes`. nullptr: only given pretokens can be encoded.
  std::shared_ptr<const Automaton> automaton;
  // normalizer: applied to the text between added tokens that are not normalized. changes: the changes that
  // the pre-tokenizer makes first, applied to the text between all added tokens.
  std::vector<Normalizer::Kind> normalizer, changes;
};

// Return the vocabulary for texts that these components produce. Throws std::invalid_argument like
// Vocabulary.
Vocabulary vocabulary_for(const FileComponents &components, std::vector<Vocabulary::Entry> entries,
                          const std::optional<Vocabulary::Merges> &merges, bool ignore_merges,
                          std::optional<TextRules> rules);

// The components as applied by the core. Immutable and thread-safe.
struct Components {
  Components() = default;
  // Exchanges spaces and U+2581 if the rules of the vocabulary allow it. If entries are text and the
  // pre-tokenizer leaves every text whole, texts are cut where no merge reaches (vocabulary/merge_cuts.hpp).
  // ignore_merges: a whole pretoken may be an entry, so merges alone do not determine the cuts.
  Components(FileComponents of, const Vocabulary &vocabulary, bool ignore_merges);

  AddedTokens all_tokens;   // including tokens that merges make anyway
  AddedTokens added_tokens; // tokens to search for
  std::shared_ptr<const Automaton> automaton;
  std::shared_ptr<const Normalizer> normalizer, changes, both; // both: one after the other; nullptr for none
  bool leaves_whole = false;                                   // whether the pre-tokenizer cuts no text
};

} // namespace bpe
