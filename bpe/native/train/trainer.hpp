// Train the merges of a BPE vocabulary from distinct pretokens and their counts.
//
// The next merge is the pair of adjacent entries with the highest count, weighted by pretoken counts. Ties:
// `lexicographic` chooses the pair of byte strings that compares greater (left first, then right), and
// `huggingface` the lower pair of IDs. Merges equal bpe/reference.py for any order of pretokens and any
// number of threads.
//
// IDs: the initial entries from 0 in the given order, then one per merge.
//
// A merge never makes bytes that are already an entry. Proof: take a span of a pretoken that still has a
// token border at both ends. No merge so far crossed its ends, so what happened inside depends only on the
// bytes of the span: pairs of two different IDs do not overlap, and in a run of one ID, replaced from the
// left, an odd number of IDs before the span would have paired one across its start. So when the bytes t
// first become an entry, every span t with both borders becomes that one token, and no later pair can spell
// t. Hence each merge makes a new entry, and pairs with it arise only in this merge. All other pair counts
// only fall.
//
// Training may continue from a vocabulary. Pretokens then consist of the symbols that its merges make, and
// pairs with the bytes of an existing entry are skipped. The proof still holds: the merges of the vocabulary
// inside the span depend on its bytes alone, since they apply by rank, leftmost first. No old merge applies
// again: old merges join old entries, and no new merge makes two of these adjacent. So encoding with the old
// merges and then the new ones gives the symbols that the training used.
//
// With a prefix within words or a suffix at their ends, a merge removes the prefix from its right part, and
// entries imply a position in the pretoken: those that start with the prefix are within it, those that end
// with the suffix are at its end. Entries with these letters as ordinary text must therefore never be made: a
// pair is excluded if it starts with the prefix but its left part does not, or ends with the suffix but its
// right part does not. The proof then holds for spans of the same bytes at the same end of a pretoken. An
// initial vocabulary may contain such entries; pairs that would make an entry again are skipped when they
// come up.
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
// absent. Symbols are bytes or, if `ids` is not null, IDs of the initial entries. Duplicate pretokens are
// allowed. Sorted pretokens are fastest (merge_slots.hpp). ends must ascend. The caller keeps the arrays
// alive and unchanged.
struct PretokenView {
  const uint8_t *bytes;
  const uint32_t *ids;
  const uint64_t *ends;
  const uint64_t *counts;
  size_t size;
};

struct Merge {
  uint32_t left, right; // IDs
  uint64_t count;       // of the pair when it was merged
};

// Called with the number of entries made so far, about ten times per second. An exception ends the training.
using TrainingProgress = std::function<void(uint64_t)>;

struct TrainingOptions {
  uint64_t new_entries;
  std::vector<std::string> first_entries; // distinct; if symbols are bytes, the 256 bytes in any order
  std::vector<std::string> reserved;      // byte strings that must not become an entry
  std::string prefix, suffix;             // of entries within and at the end of a pretoken; empty: none
  TieBreak tie_break = TieBreak::lexicographic;
  uint64_t min_frequency = 1;   // pairs that occur less often are not merged; 0 means 1
  uint64_t max_token_bytes = 0; // longer entries are not made; 0: no limit
  // The same in letters, without prefix and suffix: characters of text, otherwise bytes.
  uint64_t max_token_letters = 0;
  bool letters_are_characters = false;
  unsigned threads = 1; // for passes over all slots
  MemoryLimit limit{};  // checked before each allocation
  // Number of pairs listed at first, before there are entries of many bytes.
  uint64_t first_pairs = 1000;
  // maximum number of pairs with counts in memory; 0: derived from new_entries
  uint64_t max_tracked_pairs = 0;
  bool wide = false; // use 32-bit IDs and 64-bit offsets for any size, for tests
};

// Return at most options.new_entries merges, fewer if no pair is left. Cost: nearly linear in the bytes of
// the distinct pretokens. Memory: 4 to 8 bytes per byte and pretoken, and about 350 per entry. Throws
// std::invalid_argument if counts times lengths exceed 2^63 or the entries exceed 2^31, and std::bad_alloc,
// also if the limit would be exceeded.
std::vector<Merge> train_merges(const PretokenView &pretokens, const TrainingOptions &options,
                                const TrainingProgress &progress);

} // namespace bpe
