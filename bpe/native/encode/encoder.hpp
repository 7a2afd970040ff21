// Texts, batches and document streams to token ids, with threads.
//
// An Encoder is immutable but for its pool of sessions (encoder_session.hpp), which keep their caches between
// calls; calls from several threads at once each take sessions of their own. All caches together hold at most
// cache_bytes: a session may take cache_bytes divided by the number of sessions there are (at least by the
// call's threads), and what it takes is reserved from one budget. A session whose share has shrunk starts
// with an empty cache.
//
// With threads > 1 work is cut into pieces of about 256 KiB of text, long documents too where a cut leaves
// their pretokens as they are. Each is encoded into a small buffer
// that is used again and again, and copied once its place in the result is known, so the result's pages are
// touched once. The result is the same for any number of threads.
#pragma once

#include "encode/components.hpp"
#include "encode/cut_into_pieces.hpp"
#include "encode/encoder_session.hpp"
#include "encode/piece_assembly.hpp"
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

  // Texts are valid UTF-8. `special`: the tokens to recognise; all others are text like any other.
  void encode(std::string_view text, const AddedTokens &special, std::vector<uint32_t> &ids) const;
  EncodedRows encode_batch(const std::vector<std::string_view> &texts, size_t threads,
                           const AddedTokens &special) const;
  // A row for each document. Separators are found leftmost first, do not overlap, and are valid UTF-8, at
  // least one byte. Into `out` if it is lent, which needs out_tokens(text.size()) of room. check: validate
  // the text; each document is validated while it is in the cache of the core that encodes it. Throws
  // std::invalid_argument for text or a separator that is not valid UTF-8.
  EncodedRows encode_documents(std::string_view text, std::string_view separator, size_t threads,
                               const AddedTokens &special, bool check, TokenBuffer out = {}) const;
  // A row for each text, which is [offsets[i], offsets[i + 1]) of `text`; offsets ascend and end within it.
  // Throws std::invalid_argument for a row that begins or ends inside a character.
  EncodedRows encode_ragged(std::string_view text, const uint64_t *offsets, size_t rows, size_t threads,
                            const AddedTokens &special, TokenBuffer out = {}) const;
  // A text may be encoded in parts, each cut off with last_cut: the parts have the IDs of the whole. start:
  // inside for all parts but the first. normalize: apply the normalizers; otherwise that was done before.
  TokenBuffer encode_part(std::string_view text, const AddedTokens &special, TextStart start,
                          bool normalize) const;
  // The last offset found at which the text may be cut, whatever follows it; 0: none.
  size_t last_cut(std::string_view text, const AddedTokens &special) const;
  static constexpr size_t out_tokens(size_t text_bytes) { return text_bytes + EncoderSession::spare_tokens; }
  // Pretoken i is [ends[i - 1], ends[i]) of text. as_rows: each is a row, else there is none. Throws
  // std::invalid_argument where ends fall or pass text's end.
  EncodedRows encode_pretokens(std::string_view text, const uint64_t *ends, size_t count, bool as_rows) const;

  const Vocabulary &vocabulary() const { return vocabulary_; }
  const Components &components() const { return components_; }
  bool ignores_merges() const { return ignore_merges_; }
  // Whether one pass forward over the text as it is finds the pretokens.
  bool streams() const {
    return components_.automaton && components_.automaton->streams() && !components_.both;
  }
  size_t cache_bytes_used() const { return budget_.used_bytes(); }

private:
  class SessionLoan;
  using EncodePiece = std::function<void(EncoderSession &, size_t piece)>;

  // normalize: apply the normalizers; otherwise that was done before.
  void encode_text(EncoderSession &session, std::string_view text, const uint8_t *readable,
                   const AddedTokens &special, TextStart start, bool normalize = true) const;
  // The text between two tokens that are not normalized.
  void encode_between(EncoderSession &session, std::string_view text, const uint8_t *readable,
                      const SpecialTokens &normalized, TextStart start, bool normalize) const;
  // The normalized text between two tokens.
  void encode_changed(EncoderSession &session, std::string_view text, const uint8_t *readable,
                      TextStart start, bool normalize) const;
  std::shared_ptr<const AddedTokens> tokens_within_documents(std::string_view separator,
                                                             const AddedTokens &special) const;
  std::optional<WithinDocuments> cuts_within(const AddedTokens &special) const;
  size_t most_tokens(size_t text_bytes) const;
  EncodedRows encode_pieces(size_t piece_count, size_t threads, size_t text_bytes, const EncodePiece &encode,
                            TokenBuffer out = {}) const;

  const Vocabulary vocabulary_;
  const bool ignore_merges_;
  const Components components_;
  const std::optional<CharacterTable> characters_; // unless the vocabulary merges characters
  mutable CacheBudget budget_;
  mutable std::mutex pool_mutex_;
  mutable std::vector<std::unique_ptr<EncoderSession>> idle_;
  mutable size_t session_count_ = 0;
  mutable std::string known_separator_; // that known_within_ is for
  mutable std::shared_ptr<const AddedTokens> known_within_;
};

} // namespace bpe
