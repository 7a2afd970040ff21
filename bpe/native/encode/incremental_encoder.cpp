#include "encode/incremental_encoder.hpp"

#include "pretokenize/safe_cut.hpp"
#include "simd/simd_variants.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <iterator>

namespace bpe {

IncrementalEncoder::IncrementalEncoder(const Encoder &encoder, const AddedTokens &special, size_t min_bytes)
    : encoder_(encoder), special_(special), min_bytes_(std::max<size_t>(1, min_bytes)),
      try_bytes_(min_bytes_) {
  const SpecialTokens &tokens = special.normalized().empty() ? special.raw() : special.normalized();
  const bool has_one_pass = special.raw().empty() || special.normalized().empty();
  const Vocabulary &vocabulary = encoder.vocabulary();
  if (!encoder.streams() || vocabulary.text_rules() || !has_one_pass || !tokens.plain())
    return;
  run_tokens_ = &tokens;
}

TokenBuffer IncrementalEncoder::feed(std::string_view text) {
  held_ += text;
  if (run_) {
    if (held_.size() - (run_->walk.size() - run_->base) >= min_bytes_)
      advance(false);
  } else if (held_.size() >= try_bytes_) {
    const size_t cut = encoder_.last_cut(held_, special_);
    if (cut > 0)
      encode_held(cut);
    try_bytes_ = std::max(min_bytes_, 2 * held_.size()); // so that all attempts together take linear time
    if (cut == 0 && run_tokens_) {
      start_run();
      advance(false);
    }
  }
  return std::move(ids_);
}

TokenBuffer IncrementalEncoder::finish() {
  if (run_)
    advance(true);
  if (!held_.empty())
    encode_held(held_.size());
  start_ = TextStart::input;
  try_bytes_ = min_bytes_;
  return std::move(ids_);
}

void IncrementalEncoder::encode_held(size_t stop) {
  append(encoder_.encode_part(std::string_view(held_).substr(0, stop), special_, start_, true));
  held_.erase(0, stop);
  start_ = TextStart::inside;
}

void IncrementalEncoder::start_run() {
  const Vocabulary &vocabulary = encoder_.vocabulary();
  if (beyond_entries_ == 0)
    for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol)
      beyond_entries_ = std::max(beyond_entries_, vocabulary.bytes(symbol).size() + 1);
  run_.emplace(Run{PieceWalk(*encoder_.components().automaton, UINT64_MAX), 0, false, {}});
}

// Walk over the held text as far as special tokens are known, and encode the pretokens that are complete. The
// run ends at a special token, at a safe cut, or at the end of the text.
void IncrementalEncoder::advance(bool is_last) {
  Run &run = *run_;
  const uint8_t *const text = bytes_of(held_);
  const size_t walked = run.walk.size() - run.base;
  size_t stop = held_.size();
  if (!is_last) {
    stop = std::max(walked, stop - std::min(stop, run_tokens_->reach()));
    while (stop > walked && continues_character(text[stop]))
      --stop;
  }
  const size_t token = run_tokens_->find(text, held_.size(), walked).start;
  const bool ends = is_last || token < stop;
  stop = std::min(stop, token);
  const auto found = [&](uint64_t start, bool drops) {
    if (start != UINT64_MAX)
      run.starts.emplace_back(start, drops);
  };
  while (run.walk.size() - run.base < stop)
    run.walk.read(text + (run.walk.size() - run.base), found);
  if (ends) {
    run.walk.end(found);
    run.starts.emplace_back(run.walk.size(), false);
    return end_run(run.walk.size());
  }
  if (const size_t cut = last_safe_cut(*encoder_.components().automaton, text + walked, stop - walked))
    return end_run(run.base + walked + cut);
  const uint64_t settled = run.walk.settled();
  encode_pretokens(settled);
  if (const size_t size = settled - run.base;
      size >= std::max(min_bytes_ / 2, beyond_entries_) || long_pretoken_) {
    if (!run.drops) {
      if (!long_pretoken_)
        long_pretoken_.emplace(encoder_.vocabulary(), simd_variant().merge_pretokens,
                               std::min(max_rank_merge_bytes, std::max(min_bytes_, beyond_entries_)),
                               std::max(min_bytes_ / 4, 2 * beyond_entries_));
      long_pretoken_->add(std::string_view(held_).substr(0, size), ids_);
    }
    forget(size);
  }
}

void IncrementalEncoder::end_run(uint64_t stop) {
  encode_pretokens(stop + 1);
  run_.reset();
  try_bytes_ = min_bytes_;
}

// Encode the pretokens that end before `stop`, an offset in the run.
void IncrementalEncoder::encode_pretokens(uint64_t stop) {
  Run &run = *run_;
  std::string kept; // without dropped pieces
  std::vector<uint64_t> ends;
  std::sort(run.starts.begin(), run.starts.end());
  auto next = run.starts.begin();
  size_t start = 0;
  for (; next != run.starts.end() && next->first < stop; ++next) {
    const size_t end = next->first - run.base;
    const std::string_view pretoken = std::string_view(held_).substr(start, end - start);
    if (long_pretoken_) {
      long_pretoken_->add(pretoken, ids_);
      long_pretoken_->finish(ids_);
      long_pretoken_.reset();
    } else if (!run.drops && !pretoken.empty()) {
      kept += pretoken;
      ends.push_back(kept.size());
    }
    run.drops = next->second;
    start = end;
  }
  run.starts.erase(run.starts.begin(), next);
  append(encoder_.encode_pretokens(kept, ends.data(), ends.size(), false).tokens);
  forget(start);
}

void IncrementalEncoder::append(TokenBuffer ids) {
  if (ids_.size() == 0) {
    ids_ = std::move(ids);
    return;
  }
  uint32_t *const out = ids_.room(ids.size());
  std::copy_n(ids.data(), ids.size(), out);
  ids_.set_end(out + ids.size());
}

void IncrementalEncoder::forget(size_t bytes) {
  held_.erase(0, bytes);
  run_->base += bytes;
}

} // namespace bpe
