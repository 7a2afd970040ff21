// The merges of a BPE vocabulary, from distinct pretokens and how often each occurs.
//
// The next merge is the pair of adjacent entries with the highest count, weighted by pretoken counts. Ties:
// `lexicographic` takes the pair whose two byte strings compare greater (left first, then right),
// `huggingface` the lower pair of ids. Merges equal those of bpe/reference.py, whatever the order of the
// pretokens and the number of threads.
//
// Ids: the first entries from 0 in the order given, then one for each merge.
//
// A merge never makes bytes that are an entry already. Proof: take a span of a pretoken that still has a
// token border at both ends. No merge so far crossed its ends, so what happened inside depends on the bytes
// of the span alone: pairs of two different ids do not overlap, and in a run of one id, replaced from the
// left, an odd number of ids before the span would have paired one across its start. So when the bytes t
// first become an entry, every span t with both borders becomes that one token, and no later pair can spell
// t. Hence each merge makes a new entry, and pairs with it arise only in this merge: elsewhere pair counts
// only fall.
//
// A training may go on from a vocabulary: then pretokens are what its merges make of them, and pairs whose
// bytes are an entry already are passed over. The proof holds as before: which merges of the vocabulary were
// done inside the span depends on its bytes alone, since they are done by rank, leftmost first. The old
// merges stay done: they join old entries, and no merge makes two of these neighbours. So encoding with the
// old merges and then the new ones gives what the training saw.
//
// With a prefix within words or a suffix at their ends, a merge takes the prefix from its right part, and
// entries say where in a pretoken they stand: those that begin with the prefix within it, those that end in
// the suffix at its end. So what has these letters of its own, as text, is never made: a pair that begins
// with the prefix and whose left part does not, or ends in the suffix and whose right part does not. The
// proof then holds for spans of the same bytes at the same end of a pretoken. A vocabulary from before may
// have such entries; pairs that would make an entry again are passed over when their turn comes.
#pragma once

#include "common/memory_limit.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bpe {

enum class TieBreak : uint8_t { lexicographic, huggingface };

// Pretoken i is the symbols [i == 0 ? 0 : ends[i - 1], ends[i]) and occurs counts[i] times; 0 counts as
// absent. Symbols are bytes, or, where `ids` is not null, ids of the first entries. Repeated pretokens are
// allowed; sorted ones are merged quickest (slot_plan.hpp). ends ascend; the caller keeps the arrays alive
// and unchanged.
struct PretokenView {
  const uint8_t *bytes;
  const uint32_t *ids;
  const uint64_t *ends;
  const uint64_t *counts;
  size_t size;
};

struct Merge {
  uint32_t left, right; // ids
  uint64_t count;       // of the pair when it was merged
};

// Called with the number of entries made so far, about ten times a second; what it throws ends the training.
using TrainingProgress = std::function<void(uint64_t)>;

struct TrainingOptions {
  uint64_t new_entries;
  std::vector<std::string>
      first_entries;                 // all different; where symbols are bytes, the 256 bytes in any order
  std::vector<std::string> reserved; // bytes of no entry that must not become one
  std::string prefix, suffix;        // of entries within and at the end of a pretoken; empty: none
  TieBreak tie_break = TieBreak::lexicographic;
  uint64_t min_frequency = 1;   // pairs that occur less often are not merged; 0 means 1
  uint64_t max_token_bytes = 0; // longer entries are not made; 0: no limit
  // The same in letters, prefix and suffix not counted: characters of text, else bytes.
  uint64_t max_token_letters = 0;
  bool letters_are_characters = false;
  unsigned threads = 1; // for scans, and for merges with many places
  MemoryLimit limit{};  // asked before memory is taken
  // Pairs that are listed at first, before there are entries of many bytes.
  uint64_t first_pairs = 1000;
  uint64_t max_tracked_pairs = 0; // whose counts are kept at a time; 0: by new_entries
  bool wide = false; // ids of 32 and places of 64 bits whatever the sizes, so that tests reach them
};

// At most options.new_entries merges, fewer when no pair is left.
// Cost: near linear in the bytes of the distinct pretokens; memory 4 to 8 bytes for each of these bytes and
// each pretoken, and some 350 for an entry. Throws std::invalid_argument when counts times lengths pass 2^63
// or the entries 2^31, std::bad_alloc, also where the limit would be passed.
std::vector<Merge> train_merges(const PretokenView &pretokens, const TrainingOptions &options,
                                const TrainingProgress &progress);

} // namespace bpe
