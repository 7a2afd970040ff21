#include "encode/pieces.hpp"

#include "normalize/normalized_cut.hpp"
#include "text/find_bytes.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <stdexcept>

namespace bpe {

namespace {

// Return whether two occurrences of the string can overlap ("aa", "\n\n"). Only a search from the start of
// the text then finds the leftmost ones.
bool overlaps_itself(std::string_view text) {
  for (size_t shift = 1; shift < text.size(); ++shift)
    if (text.substr(shift) == text.substr(0, text.size() - shift))
      return true;
  return false;
}

// Return whether the result depends on a token, and no text, preceding a part of a document.
bool asks_for_start(const WithinDocuments &within) {
  return within.normalizer && (within.normalizer->prefixes() || within.normalizer->prepends());
}

// Return whether a cut between two pretokens preserves all special tokens and the prefix of the text after
// each.
bool keeps_tokens(std::string_view text, const WithinDocuments &within, size_t place) {
  return !within.special.stands_across(bytes_of(text), text.size(), place) &&
         !(asks_for_start(within) && within.special.may_end_at(text, place));
}

} // namespace

size_t last_cut(std::string_view text, const WithinDocuments &within, std::string_view separator) {
  constexpr int max_tries = 1024; // adjacent special tokens may have no valid cut between them
  const size_t reach = within.special.reach();
  const size_t around = separator.empty() ? 0 : separator.size() - 1;
  const size_t unknown = std::max(reach, around); // bytes at the end, where a longer match may begin
  size_t limit = text.size() - std::min(text.size(), unknown);
  while (limit > 0 && continues_character(text[limit]))
    --limit;
  for (int i = 0; i < max_tries && limit > 0; ++i) {
    limit = last_normalized_cut(within.automaton, within.normalizer, bytes_of(text), limit, true);
    const size_t before = std::min(limit, around);
    const bool cuts_separator =
        around > 0 && text.substr(limit - before, before + around).find(separator) != std::string_view::npos;
    if (limit > 0 && !cuts_separator && keeps_tokens(text, within, limit))
      return limit;
  }
  const SpecialTokens &raw = within.special.raw();
  const SpecialTokens &tokens = raw.empty() ? within.special.normalized() : raw;
  if (!separator.empty() || !tokens.plain() || asks_for_start(within))
    return 0;
  size_t cut = 0;
  SpecialTokens::Search search(tokens, bytes_of(text), text.size());
  for (SpecialTokens::Match match; (match = search.next()).start + reach <= text.size();)
    cut = match.stop;
  return cut;
}

std::vector<size_t> cut_into_pieces(std::string_view text, std::string_view separator,
                                    const std::optional<WithinDocuments> &within) {
  std::vector<size_t> starts{0};
  const uint8_t *const bytes = bytes_of(text);
  const bool search_all = overlaps_itself(separator);
  size_t position = 0, found = 0;
  bool searched = false; // whether `found` is the first separator from `position`
  while (text.size() - starts.back() > piece_bytes) {
    if (!search_all)
      position = std::max(position, starts.back() + piece_bytes - separator.size());
    if (!searched || found < position)
      found = find_bytes(bytes, text.size(), position, separator);
    searched = true;
    if (within && !search_all && found - starts.back() > 2 * piece_bytes) {
      if (const size_t cut = last_cut(text.substr(starts.back(), piece_bytes), *within, separator)) {
        starts.push_back(starts.back() + cut);
        continue;
      }
    }
    if (found == text.size())
      break;
    position = found + separator.size();
    searched = false;
    if (position - starts.back() >= piece_bytes)
      starts.push_back(position);
  }
  starts.push_back(text.size());
  return starts;
}

PieceAssembly::PieceAssembly(size_t piece_count, TokenBuffer out)
    : rows_{std::move(out), {}}, waiting_(piece_count) {
  rows_.offsets.push_back(0);
}

TokenBuffer PieceAssembly::add(size_t piece, TokenBuffer tokens, std::vector<uint64_t> row_ends) {
  struct Placed {
    TokenBuffer tokens;
    uint64_t start;
  };
  std::vector<Placed> placed;
  {
    const std::lock_guard lock(mutex_);
    waiting_[piece].emplace(std::move(tokens), std::move(row_ends));
    for (; first_waiting_ < waiting_.size() && waiting_[first_waiting_]; ++first_waiting_) {
      auto &[ids, ends] = *waiting_[first_waiting_];
      if (ids.size() > rows_.tokens.capacity() - token_count_)
        throw std::length_error("a normalizer made more tokens than its growth allows");
      for (const uint64_t end : ends)
        rows_.offsets.push_back(token_count_ + end);
      const uint64_t start = token_count_;
      token_count_ += ids.size();
      placed.push_back({std::move(ids), start});
      waiting_[first_waiting_].reset();
    }
  }
  uint32_t *const out = rows_.tokens.data();
  for (const Placed &ready : placed) {
    rows_.tokens.prepare(ready.start, ready.start + ready.tokens.size());
    std::copy(ready.tokens.data(), ready.tokens.data() + ready.tokens.size(), out + ready.start);
  }
  const std::lock_guard lock(mutex_);
  for (Placed &ready : placed)
    spare_.push_back(std::move(ready.tokens));
  if (spare_.empty())
    return TokenBuffer();
  TokenBuffer buffer = std::move(spare_.back());
  spare_.pop_back();
  buffer.clear();
  return buffer;
}

EncodedRows PieceAssembly::take() {
  rows_.tokens.set_end(rows_.tokens.data() + token_count_);
  rows_.tokens.shrink();
  return std::move(rows_);
}

} // namespace bpe
