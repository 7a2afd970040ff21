// The large parts of a tokenizer.json as text: what entry_list.hpp reads, written.
//
// Compact JSON as Python's json.dumps writes it with separators (",", ":") and characters beyond ASCII as
// they are, byte for byte (tests/bpe/test_fast_reading.py). About 0.1 s for 200,000 entries and 450,000
// merges.
#pragma once

#include "vocabulary/vocabulary.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe {

// Listed merges, or every split of a rank file's entries: two symbols a merge, lowest rank first.
std::vector<uint32_t> listed_merges(const Vocabulary &vocabulary);

// The object {entry in the byte alphabet: id} by ascending id. special_keys: id and key, as a JSON string
// with its quotes, of each special token, by ascending id; they stand in place of an entry with the same id.
std::string vocab_json(const Vocabulary &vocabulary,
                       const std::vector<std::pair<uint32_t, std::string_view>> &special_keys);

// The list of merges, ["left","right"] or "left right" each.
std::string merges_json(const Vocabulary &vocabulary, bool as_pairs);

} // namespace bpe
