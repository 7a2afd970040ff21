// The encoding loop of one thread: takes texts and produces IDs and row ends in the order of the calls.
//
//     for each window of the text:
//         walk over Chinese characters that need no scan (character_encoder.hpp)
//         scan the window: where do pretokens start?
//         compute the cache keys of its pretokens, and convert them to IDs in batches (batch_encoder.hpp)
//
// Beyond that:
// 1. A pretoken of more than 15 bytes is cut between characters that no entry crosses.
// 2. A pre-tokenizer of several phases cuts the pieces again (later_phases.hpp), and may drop some.
// 3. Normalized text is kept here until its pretokens are encoded (normalized_text.hpp).
//
// Not thread-safe. Texts must stay in place until finish().
#pragma once

#include "encode/batch_encoder.hpp"
#include "encode/character_encoder.hpp"
#include "encode/normalized_text.hpp"
#include "pretokenize/later_phases.hpp"
#include "pretokenize/text_window.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace bpe {

class EncoderSession {
public:
  // The vocabulary, its characters, the automaton and the budget must outlive the session. characters: null
  // if the vocabulary merges characters. automaton: cuts texts; null: only encode_pretoken() may be called.
  EncoderSession(const Vocabulary &vocabulary, const CharacterTable *characters, const Automaton *automaton,
                 bool ignore_merges, CacheBudget &budget, size_t cache_share_bytes);

  BatchEncoder out;
  NormalizedText normalized_text; // used by encoders with a normalizer
  NormalizedText changed_text;    // applies the changes of the pre-tokenizer to it

  // Encode valid UTF-8 without special tokens; needs an automaton. Bytes up to `readable` (>= text + size)
  // may be read. begins_input: no text of the input comes before.
  void encode_text(const uint8_t *text, size_t size, const uint8_t *readable, bool begins_input = false);
  // Encode one given pretoken of any bytes, not empty, less than 4 GiB.
  void encode_pretoken(const uint8_t *start, const uint8_t *stop, const uint8_t *readable) {
    characters_.push_cut(start, start, stop, readable);
  }
  void reset(); // drops pending work, tokens and rows

private:
  void encode_window(size_t offset, const uint8_t *readable);
  void encode_staying(const uint8_t *readable, size_t input_bytes);
  void encode_each_piece(const uint8_t *readable, size_t input_bytes);
  void push_piece(const uint8_t *start, const uint8_t *stop, const uint8_t *readable, size_t input_bytes);
  void walk_keys(size_t &offset, const uint8_t *readable);

  CharacterEncoder characters_;
  const WalkKeys walk_keys_;
  std::optional<TextWindow> window_; // set if there is an automaton
  const LaterPhases *later_phases_ = nullptr;
  std::optional<LaterPieces> later_; // set if the automaton has later phases
};

} // namespace bpe
