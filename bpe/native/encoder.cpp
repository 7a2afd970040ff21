#include "encoder.hpp"

#include "find_bytes.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

namespace bpe {

namespace {

// Small enough for a thread's buffer of ids to stay in its cache, large enough for the hand-over not to matter.
constexpr size_t piece_bytes = 1 << 20;

const uint8_t *bytes_of(std::string_view text) { return reinterpret_cast<const uint8_t *>(text.data()); }

std::vector<std::string> texts_of(const std::vector<std::pair<std::string, uint32_t>> &special_tokens) {
  std::vector<std::string> texts;
  for (const auto &[text, id] : special_tokens)
    texts.push_back(text);
  return texts;
}

// Whether two occurrences of the string can overlap ("aa", "\n\n"): then only a search from the start of the text
// finds the leftmost ones.
bool overlaps_itself(std::string_view text) {
  for (size_t shift = 1; shift < text.size(); ++shift)
    if (text.substr(shift) == text.substr(0, text.size() - shift))
      return true;
  return false;
}

// Where to cut a text into pieces of about piece_bytes: behind separators. Starts of the pieces, then text.size();
// a piece but the last ends with a separator.
std::vector<size_t> cut_at_separators(std::string_view text, std::string_view separator) {
  std::vector<size_t> starts{0};
  const uint8_t *const bytes = bytes_of(text);
  const bool search_all = overlaps_itself(separator);
  size_t position = 0;
  while (text.size() - starts.back() > piece_bytes) {
    if (!search_all)
      position = std::max(position, starts.back() + piece_bytes - separator.size());
    const size_t found = find_bytes(bytes, text.size(), position, separator);
    if (found == text.size())
      break;
    position = found + separator.size();
    if (position - starts.back() >= piece_bytes)
      starts.push_back(position);
  }
  starts.push_back(text.size());
  return starts;
}

} // namespace

// A session out of the pool, back in it when the loan ends.
class Encoder::SessionLoan {
public:
  SessionLoan(const Encoder &encoder, size_t threads) : encoder_(encoder) {
    std::unique_ptr<EncoderSession> outgrown; // destroyed after the lock
    const std::lock_guard lock(encoder.pool_mutex_);
    const bool fresh = encoder.idle_.empty();
    const size_t sessions = std::max(threads, encoder.session_count_ + fresh);
    const size_t share = encoder.budget_.limit_bytes() / sessions;
    if (!fresh) {
      session_ = std::move(encoder.idle_.back());
      encoder.idle_.pop_back();
      if (session_->cache_share_bytes() <= share)
        return;
      outgrown = std::move(session_);
      --encoder.session_count_;
    }
    session_ = std::make_unique<EncoderSession>(encoder.vocabulary_, encoder.pattern_, encoder.whole_pretokens_,
                                                encoder.budget_, share);
    ++encoder.session_count_;
  }
  ~SessionLoan() {
    session_->reset();
    const std::lock_guard lock(encoder_.pool_mutex_);
    try {
      encoder_.idle_.push_back(std::move(session_));
    } catch (const std::bad_alloc &) { // one session fewer
      --encoder_.session_count_;
    }
  }
  SessionLoan(const SessionLoan &) = delete;
  SessionLoan &operator=(const SessionLoan &) = delete;
  EncoderSession &operator*() const { return *session_; }
  EncoderSession *operator->() const { return session_.get(); }

private:
  const Encoder &encoder_;
  std::unique_ptr<EncoderSession> session_;
};

Encoder::Encoder(std::vector<Vocabulary::Entry> entries, const std::optional<Vocabulary::Merges> &merges,
                 std::vector<std::pair<std::string, uint32_t>> special_tokens, std::optional<Pattern> pattern,
                 bool whole_pretokens, size_t cache_bytes)
    : vocabulary_(std::move(entries), merges), special_list_(std::move(special_tokens)),
      special_tokens_(texts_of(special_list_)), pattern_(pattern), whole_pretokens_(whole_pretokens),
      budget_(cache_bytes) {
  for (const auto &[text, id] : special_list_)
    special_ids_.push_back(id);
}

void Encoder::encode_text(EncoderSession &session, const uint8_t *text, size_t size, const uint8_t *readable,
                          const SpecialTokens *special) const {
  size_t start = 0;
  while (special && start < size) {
    const SpecialTokens::Match match = special->find(text, size, start);
    if (match.start == size)
      break;
    session.encode_text(text + start, match.start - start, readable);
    session.append_token(special_ids_[match.index]);
    start = match.stop;
  }
  session.encode_text(text + start, size - start, readable);
}

void Encoder::encode(std::string_view text, bool special, std::vector<uint32_t> &ids) const {
  SessionLoan session(*this, 1);
  const uint8_t *const bytes = bytes_of(text);
  encode_text(*session, bytes, text.size(), bytes + text.size(),
              special && !special_tokens_.empty() ? &special_tokens_ : nullptr);
  session->finish();
  ids.assign(session->tokens.data(), session->tokens.data() + session->tokens.size());
}

EncodedRows Encoder::encode_batch(const std::vector<std::string_view> &texts, size_t threads) const {
  // Pieces of whole texts.
  std::vector<size_t> starts{0};
  size_t total = 0, in_piece = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    total += texts[i].size();
    in_piece += texts[i].size();
    if (in_piece >= piece_bytes) {
      starts.push_back(i + 1);
      in_piece = 0;
    }
  }
  if (starts.back() != texts.size())
    starts.push_back(texts.size());
  const SpecialTokens *const special = special_tokens_.empty() ? nullptr : &special_tokens_;
  return encode_pieces(starts.size() - 1, threads, total, [&](EncoderSession &session, size_t piece) {
    for (size_t i = starts[piece]; i < starts[piece + 1]; ++i) {
      const uint8_t *const bytes = bytes_of(texts[i]);
      encode_text(session, bytes, texts[i].size(), bytes + texts[i].size(), special);
      session.end_row();
    }
  });
}

EncodedRows Encoder::encode_documents(std::string_view text, std::string_view separator, size_t threads,
                                      bool special) const {
  if (separator.empty())
    throw std::invalid_argument("the separator is empty; documents need at least one byte between them");
  // A special token that holds the separator can't lie within a document: the usual case of one special token, which
  // is the separator, needs no second search.
  std::vector<std::string> within;
  std::vector<uint32_t> index_of;
  for (uint32_t i = 0; special && i < special_list_.size(); ++i) {
    if (special_list_[i].first.find(separator) == std::string::npos)
      within.push_back(special_list_[i].first), index_of.push_back(i);
  }
  const bool all_within = within.size() == special_list_.size();
  const SpecialTokens *search = nullptr;
  (void)all_within;
  (void)search;
  return {};
}

} // namespace bpe
