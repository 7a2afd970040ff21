// Cut pretokens at safe borders, and encode Chinese text by characters.
//
// A border between two characters is safe if no entry of the vocabulary crosses it: the text on either side
// has the same IDs as in the whole pretoken, for any merges. Three-byte characters between two such borders
// have their IDs in the CharacterTable. The rest becomes parts that are looked up in the cache.
//
//     push_cut: the rest of one pretoken, cut into runs of characters and parts
//     walk_scanned: pretokens of a window, by characters as long as there are some
//     walk_unscanned: text before it is scanned, if two characters determine enough of the borders
//                     between pretokens
#pragma once

#include "encode/batch_encoder.hpp"
#include "pretokenize/text_window.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

class CharacterEncoder {
public:
  // characters: null if the vocabulary merges characters; no pretoken is cut then. automaton: may be null.
  CharacterEncoder(const Vocabulary &vocabulary, const CharacterTable *characters, const Automaton *automaton,
                   BatchEncoder &out);

  // Push the rest of the pretoken [start, stop) from p, which is a safe border or `start`. Throws
  // std::length_error for 4 GiB or more.
  void push_cut(const uint8_t *start, const uint8_t *p, const uint8_t *stop, const uint8_t *readable);
  // Return whether to walk over a text by characters from `at`, the start of a pretoken.
  bool may_walk(const uint8_t *at, const uint8_t *stop) const;
  // Walk over the window from `offset`, and advance it to the start of a pretoken followed by other
  // characters, or to the last certain start.
  void walk_scanned(const TextWindow &window, size_t &offset, const uint8_t *readable);
  // Return whether walk_unscanned() may be called.
  bool walks_unscanned() const { return borders_ != nullptr; }
  // Walk from the start of a piece, and over some pieces between such characters, without a scan. Returns a
  // safe border or one between pieces, or `at` if there is nothing to walk over.
  const uint8_t *walk_unscanned(const uint8_t *at, const uint8_t *stop, const uint8_t *readable);
  // Return the start of the last piece known to start at or before p, a border that a walk reached from a
  // start.
  const uint8_t *last_piece(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const;

private:
  void walk_on(CharacterWalk &walk, const uint8_t *readable);
  const uint8_t *next_border(const uint8_t *p, const uint8_t *stop) const;
  const uint8_t *push_start(const uint8_t *start, const uint8_t *p, const uint8_t *stop,
                            const uint8_t *readable);
  const uint8_t *characters_end(const uint8_t *p, const uint8_t *stop) const;
  const uint8_t *next_safe_border(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const;
  bool may_join(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const;

  const Vocabulary &vocabulary_;
  const Characters characters_; // empty if merges are not of bytes
  const bool has_ids_;
  const Automaton *borders_; // the automaton if texts are walked over before they are scanned
  const WalkCharacters walk_characters_;
  const FindCharacters find_characters_;
  BatchEncoder &out_;
};

} // namespace bpe
