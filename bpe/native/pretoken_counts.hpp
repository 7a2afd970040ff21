// Distinct pretokens of texts with exact 64-bit counts.
//
// A text is cut at its special tokens, which are not counted, and long stretches without one where the
// pattern allows it (last_safe_cut); the pieces go to threads. Each thread counts into a small table of its
// own, which stays in its cache, and pours it into the shared ones when it is full: the frequent pretokens
// cost no cache miss, and the rare ones arrive in the order in which they lie in memory. The counts depend
// neither on the number of threads nor on how they are scheduled.
#pragma once

#include "own_pretokens.hpp"
#include "pretoken_table.hpp"
#include "pretokenize.hpp"
#include "special_tokens.hpp"

#include <array>
#include <mutex>
#include <optional>
#include <vector>

namespace bpe {

// Pretoken i is bytes [i == 0 ? 0 : ends[i - 1], ends[i]); ascending as byte strings, none twice.
struct PretokenItems {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> ends, counts;
};

// Calls from several threads wait for each other; count() itself uses the threads it is given.
class PretokenCounter {
public:
  // Without a pattern only add() may be used.
  explicit PretokenCounter(std::optional<Pattern> pattern);

  // Counts the pretokens of a text. in_document: whether it goes on with a document; afterwards whether it
  // ends in one. Returns how many documents, stretches between special tokens that are not empty, start in
  // it. Throws std::invalid_argument without a pattern or where the text is not valid UTF-8 (the lowest such
  // byte), std::length_error for a pretoken of 4 GiB or more, std::bad_alloc; the counts are then incomplete.
  uint64_t count(const uint8_t *text, size_t size, const SpecialTokens &special_tokens, unsigned threads,
                 bool &in_document);

  // Adds `count` to one pretoken; an empty one and a count of 0 are passed over.
  void add(const uint8_t *bytes, size_t size, uint64_t count);

  size_t size();
  // Cost: a sort of what is there, with as many threads as count() was given.
  PretokenItems items();
  // The same, after which nothing is counted yet and the memory is given back.
  PretokenItems drain();
  // Bytes that the counts take; items() and drain() take up to 33 for each pretoken, and its bytes, beside.
  size_t memory_bytes();

  // The largest place at which a text that goes on may be cut without changing the counts; 0 if there is
  // none. Without a pattern that is after a special token only. Looks at the end of the text alone where no
  // special token can overlap another.
  size_t last_cut(const uint8_t *text, size_t size, const SpecialTokens &special_tokens) const;

private:
  // Stripe i holds the hashes that start with the bits of i, so threads rarely want the same one.
  static constexpr int stripe_bits = 6;
  struct Stripe {
    std::mutex mutex;
    PretokenTable table{stripe_bits};
    PretokenText text{1 << 16};
  };

  Stripe &stripe(uint64_t hash) { return stripes_[hash >> (64 - stripe_bits)]; }
  void add_spans(const Spans &spans, const uint8_t *text_stop, OwnPretokens &own);
  void pour(OwnPretokens &own);
  size_t pour_all();
  template <class Visit> void for_each_cell(Visit visit) const;
  PretokenItems sorted_items();

  std::mutex busy_;
  std::optional<Pattern> pattern_;
  unsigned threads_ = 1;
  std::vector<OwnPretokens> own_; // one a thread; not yet in the stripes
  CellMemory memory_;
  std::array<Stripe, 1 << stripe_bits> stripes_;
};

} // namespace bpe
