// Encode one text that arrives in parts, in bounded memory. The IDs equal the IDs of the joined parts.
//
//     held += part
//     no long run: once enough is held, encode up to the last safe cut; without a cut, start a run
//     in a run:    walk over the text that arrived; encode the pretokens that are complete
//                  a pretoken too long to hold: merge its settled part window by window
//                  a special token or a safe cut ends the run
//     at the end:  encode the held text
//
// A run keeps the state of the automaton between parts, so it holds little text even inside one pretoken of
// gigabytes. It needs byte-level entries, pretokens that a single forward pass finds, no normalizer, and
// added tokens that are found by their bytes alone. Other tokenizers hold the text up to the next safe cut.
#pragma once

#include "encode/encoder.hpp"
#include "merge/merge_by_windows.hpp"
#include "pretokenize/piece_walk.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe {

class IncrementalEncoder {
public:
  // encoder, special: must outlive the object. special: the added tokens to recognize. min_bytes: bytes to
  // hold before text is encoded, at least 1.
  IncrementalEncoder(const Encoder &encoder, const AddedTokens &special, size_t min_bytes);

  // Add text and return the IDs that have become certain. text: valid UTF-8, cut between characters; copied.
  // Throws std::length_error for a pretoken with merges that span more text than is held.
  TokenBuffer feed(std::string_view text);
  // Return the remaining IDs. The next call to feed() starts a new text.
  TokenBuffer finish();

private:
  struct Run {
    PieceWalk walk;
    uint64_t base = 0;                             // offset in the run of the first held byte
    bool drops = false;                            // whether the pretoken there is dropped
    std::vector<std::pair<uint64_t, bool>> starts; // later ones, and whether each is dropped
  };

  void encode_held(size_t stop);
  void start_run();
  void advance(bool is_last);
  void end_run(uint64_t stop);
  void encode_pretokens(uint64_t stop);
  void append(TokenBuffer ids);
  void forget(size_t bytes);

  const Encoder &encoder_;
  const AddedTokens &special_;
  const size_t min_bytes_;
  const SpecialTokens *run_tokens_ = nullptr; // tokens that end a run; null: there are no runs
  size_t beyond_entries_ = 0;                 // no entry has this many bytes; 0: not known yet
  size_t try_bytes_;                          // bytes to hold before a cut is tried
  std::string held_;
  TextStart start_ = TextStart::input; // of the held text
  std::optional<Run> run_;
  std::optional<StreamedMerge> long_pretoken_; // the pretoken that continues in held_
  TokenBuffer ids_;                            // to be returned
};

} // namespace bpe
