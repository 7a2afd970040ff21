#include "encode/encoder.hpp"

#include "common/thread_team.hpp"
#include "text/find_bytes.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

namespace bpe {

namespace {

// Results that may be larger reserve address space for their maximum size, because growing would split huge
// pages.
constexpr size_t reserve_tokens_at_least = 1 << 20;

// Ensure that text[at, needed) is valid, where `at` is the start of a character, and advance `at` to the end
// of the validated text. Validates 16 KiB ahead, across short documents and their separators: validating each
// document separately took a tenth of the time of Chinese poems, for their last bytes.
void require_utf8(std::string_view text, size_t &at, size_t needed) {
  constexpr size_t bytes_ahead = 16 << 10;
  while (at < needed) {
    const size_t size = std::min(std::max(needed - at, bytes_ahead), text.size() - at);
    const size_t valid = validate_utf8(bytes_of(text) + at, size);
    if (valid == 0)
      throw std::invalid_argument("the text is not valid UTF-8");
    at += valid; // may be less than the size if a character continues
  }
}

// Return whether a row of a valid text starts or ends inside a character.
bool is_cut(std::string_view row) {
  if (row.empty())
    return false;
  size_t last = row.size() - 1;
  while (last > 0 && continues_character(row[last]))
    --last;
  const auto lead = static_cast<uint8_t>(row[last]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return continues_character(row[0]) || last + length != row.size();
}

// Call section(text, start) for the text between tokens, and add the IDs of the tokens.
template <class Section>
void for_each_section(EncoderSession &session, std::string_view text, const SpecialTokens &tokens,
                      TextStart start, Section section) {
  if (tokens.empty())
    return section(text, start);
  SpecialTokens::Search search(tokens, bytes_of(text), text.size());
  for (size_t done = 0;;) { // until the last match, as whitespace of one token may contain another token
    const SpecialTokens::Match match = search.next();
    if (done < match.start)
      section(text.substr(done, match.start - done), done == 0 ? start : TextStart::section);
    if (match.value == no_special)
      return;
    if (match.start < match.stop)
      session.out.append_token(match.value);
    done = match.stop;
  }
}

} // namespace

// A session borrowed from the pool, and returned when the loan is destroyed.
class Encoder::SessionLoan {
public:
  // Borrow a session for one of `threads` that encode a text of this size together.
  SessionLoan(const Encoder &encoder, size_t threads, size_t text_bytes) : encoder_(encoder) {
    open(threads);
    session_->out.expect(text_bytes / threads);
  }
  ~SessionLoan() {
    session_->reset();
    const std::lock_guard lock(encoder_.pool_mutex_);
    try {
      encoder_.idle_.push_back(std::move(session_));
    } catch (const std::bad_alloc &) { // one session less in the pool
      --encoder_.session_count_;
    }
  }
  SessionLoan(const SessionLoan &) = delete;
  SessionLoan &operator=(const SessionLoan &) = delete;
  EncoderSession &operator*() const { return *session_; }
  EncoderSession *operator->() const { return session_.get(); }

private:
  void open(size_t threads) {
    std::unique_ptr<EncoderSession> outgrown; // destroyed after the lock is released
    const std::lock_guard lock(encoder_.pool_mutex_);
    const bool fresh = encoder_.idle_.empty();
    const size_t sessions = std::max(threads, encoder_.session_count_ + fresh);
    const size_t share = encoder_.budget_.limit_bytes() / sessions;
    if (!fresh) {
      // the most recently returned one, which is still in the CPU cache
      session_ = std::move(encoder_.idle_.back());
      encoder_.idle_.pop_back();
      if (session_->out.cache_share_bytes() <= share)
        return;
      outgrown = std::move(session_);
      --encoder_.session_count_;
    }
    const CharacterTable *const characters = encoder_.characters_ ? &*encoder_.characters_ : nullptr;
    session_ = std::make_unique<EncoderSession>(encoder_.vocabulary_, characters,
                                                encoder_.components_.automaton.get(), encoder_.ignore_merges_,
                                                encoder_.budget_, share);
    ++encoder_.session_count_;
  }

  const Encoder &encoder_;
  std::unique_ptr<EncoderSession> session_;
};

Encoder::Encoder(Vocabulary vocabulary, FileComponents components, bool ignore_merges, size_t cache_bytes)
    : vocabulary_(std::move(vocabulary)), ignore_merges_(ignore_merges),
      components_(std::move(components), vocabulary_, ignore_merges),
      characters_(vocabulary_.merges_characters() ? std::nullopt
                                                  : std::optional<CharacterTable>(vocabulary_)),
      budget_(cache_bytes) {}

void Encoder::encode_text(EncoderSession &session, std::string_view text, const uint8_t *readable,
                          const AddedTokens &special, TextStart start, bool normalize) const {
  const bool changes = normalize && components_.automaton;
  for_each_section(session, text, special.raw(), start, [&](std::string_view section, TextStart at) {
    if (special.normalized().empty())
      return encode_section(session, session.normalized_text, changes ? components_.both.get() : nullptr,
                            section, readable, at);
    const uint8_t *section_readable = readable;
    if (changes && components_.normalizer) {
      const std::string_view made =
          session.normalized_text.whole(session, *components_.normalizer, section, at);
      if (made.data() != section.data())
        section_readable = session.normalized_text.readable();
      section = made;
    }
    for_each_section(session, section, special.normalized(), at, [&](std::string_view part, TextStart from) {
      encode_section(session, session.changed_text, changes ? components_.changes.get() : nullptr, part,
                     section_readable, from);
    });
  });
}

void Encoder::encode_section(EncoderSession &session, NormalizedText &normalized,
                             const Normalizer *normalizer, std::string_view text, const uint8_t *readable,
                             TextStart start) const {
  if (normalizer)
    normalized.encode(session, *normalizer, *components_.automaton, text, readable, start);
  else
    session.encode_text(bytes_of(text), text.size(), readable, start == TextStart::input);
}

// Return the maximum number of tokens of a text of this size.
size_t Encoder::most_tokens(size_t text_bytes) const {
  return components_.both ? saturating_product(text_bytes, components_.both->max_growth()) : text_bytes;
}

void Encoder::encode(std::string_view text, const AddedTokens &special, std::vector<uint32_t> &ids) const {
  const SessionLoan session(*this, 1, text.size());
  encode_text(*session, text, bytes_of(text) + text.size(), special, TextStart::input);
  session->out.finish();
  ids.assign(session->out.tokens.data(), session->out.tokens.data() + session->out.tokens.size());
}

EncodedRows Encoder::encode_batch(const std::vector<std::string_view> &texts, size_t threads,
                                  const AddedTokens &special) const {
  std::vector<size_t> starts{0}; // pieces of whole texts
  size_t total_bytes = 0, in_piece = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    total_bytes += texts[i].size();
    in_piece += texts[i].size();
    if (in_piece >= piece_bytes || i + 1 == texts.size()) {
      starts.push_back(i + 1);
      in_piece = 0;
    }
  }
  return encode_pieces(starts.size() - 1, threads, total_bytes, [&](EncoderSession &session, size_t piece) {
    for (size_t i = starts[piece]; i < starts[piece + 1]; ++i) {
      encode_text(session, texts[i], bytes_of(texts[i]) + texts[i].size(), special, TextStart::input);
      session.out.end_row();
    }
  });
}

// Return the tokens that a document may contain, which excludes those that contain the separator. In the
// usual case, where the only special token is the separator, no second search is needed.
std::shared_ptr<const AddedTokens> Encoder::tokens_within_documents(std::string_view separator,
                                                                    const AddedTokens &special) const {
  if (!special.any_holds(separator))
    return {std::shared_ptr<const AddedTokens>(), &special};
  if (&special != &components_.added_tokens)
    return std::make_shared<AddedTokens>(special.without(separator));
  const std::lock_guard lock(pool_mutex_);
  if (!known_within_ || known_separator_ != separator) {
    known_within_ = std::make_shared<AddedTokens>(special.without(separator));
    known_separator_ = separator;
  }
  return known_within_;
}

EncodedRows Encoder::encode_documents(std::string_view text, std::string_view separator, size_t threads,
                                      const AddedTokens &special, bool check, TokenBuffer out) const {
  if (validate_utf8(bytes_of(separator), separator.size()) < separator.size())
    // the text is then valid if all documents are
    throw std::invalid_argument("the separator is not valid UTF-8");
  if (separator.empty())
    throw std::invalid_argument("the separator is empty; documents need at least one byte between them");
  const std::shared_ptr<const AddedTokens> within = tokens_within_documents(separator, special);
  const std::optional<WithinDocuments> by = cuts_within(*within);
  const uint8_t *const bytes = bytes_of(text);
  const uint8_t *const readable = bytes + text.size();
  const std::vector<size_t> starts =
      threads > 1 ? cut_into_pieces(text, separator, by) : std::vector<size_t>{0, text.size()};
  const size_t pieces = starts.size() - 1;
  const auto encode_piece = [&](EncoderSession &session, size_t piece) {
    const size_t stop = starts[piece + 1];
    size_t start = starts[piece], valid_stop = start;
    const bool goes_on = piece > 0 && !text.substr(0, start).ends_with(separator);
    TextStart begin = goes_on ? TextStart::inside : TextStart::input;
    for (;;) {
      const size_t found = find_bytes(bytes, stop, start, separator);
      if (check)
        require_utf8(text.substr(0, stop), valid_stop, found);
      encode_text(session, text.substr(start, found - start), readable, *within, begin);
      begin = TextStart::input;
      if (found == stop && piece + 1 < pieces)
        return; // after the separator of the last document, or within a document that continues
      session.out.end_row();
      if (found == stop)
        return;
      start = found + separator.size();
    }
  };
  return encode_pieces(pieces, threads, text.size(), encode_piece, std::move(out));
}

EncodedRows Encoder::encode_ragged(std::string_view text, const uint64_t *offsets, size_t rows,
                                   size_t threads, const AddedTokens &special, TokenBuffer out) const {
  std::vector<size_t> starts{0}; // pieces of whole rows
  for (size_t i = 0; threads > 1 && i + 1 < rows; ++i)
    if (offsets[i + 1] - offsets[starts.back()] >= piece_bytes)
      starts.push_back(i + 1);
  starts.push_back(rows);
  const auto encode_piece = [&](EncoderSession &session, size_t piece) {
    for (size_t i = starts[piece]; i < starts[piece + 1]; ++i) {
      const std::string_view row = text.substr(offsets[i], offsets[i + 1] - offsets[i]);
      if (is_cut(row))
        throw std::invalid_argument("document " + std::to_string(i) + " is cut inside a character");
      encode_text(session, row, bytes_of(text) + text.size(), special, TextStart::input);
      session.out.end_row();
    }
  };
  return encode_pieces(starts.size() - 1, threads, text.size(), encode_piece, std::move(out));
}

TokenBuffer Encoder::encode_part(std::string_view text, const AddedTokens &special, TextStart start,
                                 bool normalize) const {
  const auto encode_all = [&](EncoderSession &session, size_t) {
    encode_text(session, text, bytes_of(text) + text.size(), special, start, normalize);
  };
  return std::move(encode_pieces(1, 1, text.size(), encode_all).tokens);
}

std::optional<WithinDocuments> Encoder::cuts_within(const AddedTokens &special) const {
  // A token searched for in the normalized text may cross any offset of the original text.
  if (!components_.automaton || (components_.normalizer && !special.normalized().empty()))
    return std::nullopt;
  return WithinDocuments{*components_.automaton, special, components_.both.get()};
}

size_t Encoder::last_cut(std::string_view text, const AddedTokens &special) const {
  const std::optional<WithinDocuments> within = cuts_within(special);
  return within ? bpe::last_cut(text, *within) : 0;
}

EncodedRows Encoder::encode_pretokens(std::string_view text, const uint64_t *ends, size_t count,
                                      bool as_rows) const {
  const SessionLoan session(*this, 1, text.size());
  if (text.size() >= reserve_tokens_at_least)
    session->out.tokens.try_reserve(text.size());
  const uint8_t *const bytes = bytes_of(text);
  session->out.row_ends.push_back(0);
  uint64_t start = 0;
  for (size_t i = 0; i < count; ++i) {
    if (ends[i] < start || ends[i] > text.size())
      throw std::invalid_argument(
          "ends[" + std::to_string(i) + "] = " + std::to_string(ends[i]) +
          (ends[i] < start ? " is below ends[" + std::to_string(i - 1) + "] = " + std::to_string(start)
                           : " is beyond the buffer of " + std::to_string(text.size()) + " bytes") +
          "; ends must ascend within the buffer");
    if (ends[i] > start)
      session->encode_pretoken(bytes + start, bytes + ends[i], bytes + text.size());
    if (as_rows)
      session->out.end_row();
    start = ends[i];
  }
  session->out.finish();
  session->out.tokens.shrink();
  return {std::move(session->out.tokens), std::move(session->out.row_ends)};
}

EncodedRows Encoder::encode_pieces(size_t piece_count, size_t threads, size_t text_bytes,
                                   const EncodePiece &encode, TokenBuffer out) const {
  threads = std::min(threads, piece_count);
  // Threads copy their IDs into room that is reserved in advance. If the address space is not available, one
  // thread writes to a growing buffer.
  if (threads > 1 && !out.try_reserve(most_tokens(text_bytes)))
    threads = 1;
  if (threads <= 1) {
    const SessionLoan session(*this, 1, text_bytes);
    if (out.lent())
      session->out.tokens = std::move(out);
    else if (text_bytes >= reserve_tokens_at_least)
      session->out.tokens.try_reserve(text_bytes);
    session->out.row_ends.push_back(0);
    for (size_t piece = 0; piece < piece_count; ++piece)
      encode(*session, piece);
    session->out.finish();
    session->out.tokens.shrink();
    return {std::move(session->out.tokens), std::move(session->out.row_ends)};
  }

  PieceAssembly assembly(piece_count, std::move(out));
  std::atomic<size_t> next_piece{0};
  ThreadTeam(static_cast<unsigned>(threads)).run([&](unsigned) {
    try {
      const SessionLoan session(*this, threads, text_bytes);
      for (size_t piece; (piece = next_piece++) < piece_count;) {
        encode(*session, piece);
        session->out.finish();
        session->out.tokens =
            assembly.add(piece, std::move(session->out.tokens), std::move(session->out.row_ends));
        session->out.row_ends.clear();
      }
    } catch (...) {
      next_piece = piece_count; // the other threads stop after their piece
      throw;
    }
  });
  return assembly.take();
}

} // namespace bpe
