// Encode texts, batches and document streams to token IDs, with threads.
//
// An Encoder is immutable except for its pool of sessions (encoder_session.hpp), which keep their caches
// between calls. Concurrent calls use separate sessions. All caches together use at most cache_bytes: a
// session may use cache_bytes divided by the number of sessions (at least by the threads of the call), and
// reserves it from a shared budget. A session with a reduced share starts with an empty cache.
//
// With threads > 1, work is cut into pieces of about 256 KiB of text. Long documents are cut too, at offsets
// that preserve their pretokens. Each piece is encoded into a small reused buffer and copied once its
// position in the result is known, so the pages of the result are touched once. The result does not depend on
// the number of threads.
#pragma once

#include "encode/components.hpp"
#include "encode/encoder_session.hpp"
#include "encode/pieces.hpp"
#include "normalize/normalizer.hpp"
#include "text/added_tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe {

class Encoder {
public:
  Encoder(Vocabulary vocabulary, FileComponents components, bool ignore_merges, size_t cache_bytes);

  // Texts must be valid UTF-8. `special`: the tokens to recognize; others are treated as text.
  void encode(std::string_view text, const AddedTokens &special, std::vector<uint32_t> &ids) const;
  EncodedRows encode_batch(const std::vector<std::string_view> &texts, size_t threads,
                           const AddedTokens &special) const;
  // Encode documents, one row each. Separators are found leftmost first, do not overlap, and must be valid
  // UTF-8 of at least one byte. Writes to `out` if it is provided, which must have room for
  // out_tokens(text.size()). check: validate the text; each document is validated while it is in the cache of
  // the core that encodes it. Throws std::invalid_argument for text or a separator that is not valid UTF-8.
  EncodedRows encode_documents(std::string_view text, std::string_view separator, size_t threads,
                               const AddedTokens &special, bool check, TokenBuffer out = {}) const;
  // Encode the texts [offsets[i], offsets[i + 1]) of `text`, one row each. Offsets must be ascending and at
  // most its size. Throws std::invalid_argument for a row that starts or ends inside a character.
  EncodedRows encode_ragged(std::string_view text, const uint64_t *offsets, size_t rows, size_t threads,
                            const AddedTokens &special, TokenBuffer out = {}) const;
  // Encode a part of a text cut at last_cut: the parts have the same IDs as the whole. start: `inside` for
  // all parts except the first. normalize: apply the normalizers; otherwise the text is already normalized.
  TokenBuffer encode_part(std::string_view text, const AddedTokens &special, TextStart start,
                          bool normalize) const;
  // Return the last offset found where the text may be cut, whatever follows it; 0: none.
  size_t last_cut(std::string_view text, const AddedTokens &special) const;
  static constexpr size_t out_tokens(size_t text_bytes) { return text_bytes + BatchEncoder::spare_tokens; }
  // Encode given pretokens: pretoken i is [ends[i - 1], ends[i]) of text. as_rows: one row per pretoken,
  // otherwise no rows. Throws std::invalid_argument if ends descend or exceed the size of the text.
  EncodedRows encode_pretokens(std::string_view text, const uint64_t *ends, size_t count, bool as_rows) const;

  const Vocabulary &vocabulary() const { return vocabulary_; }
  const Components &components() const { return components_; }
  // Return whether one forward pass over the original text finds the pretokens.
  bool streams() const {
    return components_.automaton && components_.automaton->streams() && !components_.both;
  }
  size_t cache_bytes_used() const { return budget_.used_bytes(); }

private:
  class SessionLoan;
  using EncodePiece = std::function<void(EncoderSession &, size_t piece)>;

  // normalize: apply the normalizers; otherwise the text is already normalized.
  void encode_text(EncoderSession &session, std::string_view text, const uint8_t *readable,
                   const AddedTokens &special, TextStart start, bool normalize = true) const;
  // Encode text between two tokens. normalizer: may be null.
  void encode_section(EncoderSession &session, NormalizedText &normalized, const Normalizer *normalizer,
                      std::string_view text, const uint8_t *readable, TextStart start) const;
  std::shared_ptr<const AddedTokens> tokens_within_documents(std::string_view separator,
                                                             const AddedTokens &special) const;
  std::optional<WithinDocuments> cuts_within(const AddedTokens &special) const;
  size_t most_tokens(size_t text_bytes) const;
  EncodedRows encode_pieces(size_t piece_count, size_t threads, size_t text_bytes, const EncodePiece &encode,
                            TokenBuffer out = {}) const;

  const Vocabulary vocabulary_;
  const bool ignore_merges_;
  const Components components_;
  const std::optional<CharacterTable> characters_; // empty if the vocabulary merges characters
  mutable CacheBudget budget_;
  mutable std::mutex pool_mutex_;
  mutable std::vector<std::unique_ptr<EncoderSession>> idle_;
  mutable size_t session_count_ = 0;
  mutable std::string known_separator_; // separator of known_within_
  mutable std::shared_ptr<const AddedTokens> known_within_;
};

} // namespace bpe
