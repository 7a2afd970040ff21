// Entries as plain arrays, and the two file formats they are read from. What is wrong with a file is said by
// its place; Python, which has seen none of the items, looks there and words the error (bpe/formats).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe {

struct EntryList {
  std::vector<uint32_t> ids; // in the order of the file, <= 2^31 - 1
  std::string bytes;         // of all entries, end to end
  std::vector<uint64_t> ends;

  size_t size() const { return ids.size(); }
  std::string_view operator[](size_t i) const {
    const uint64_t start = i == 0 ? 0 : ends[i - 1];
    return {bytes.data() + start, ends[i] - start};
  }
};

// The first item that is not what its format wants. whole: the value that holds the items is not of their
// kind.
struct Fault {
  static constexpr size_t whole = SIZE_MAX;
  enum Place { none, vocab, merges, line } place = none;
  size_t index = whole;
};

// The large parts of a tokenizer.json, about 10 MB of objects in Python for 200,000 entries.
struct ModelJson {
  size_t vocab_start, vocab_stop, merges_start, merges_stop; // of model.vocab's and model.merges's values
  EntryList entries;
  // The other keys of model.vocab, unchanged, and their IDs: keys outside the byte alphabet, and the empty
  // key.
  std::vector<std::pair<std::string, uint32_t>> texts;
  std::string merge_bytes;          // of all parts of merges, end to end
  std::vector<uint64_t> merge_ends; // two a merge: left, right
  Fault fault;                      // then the items are not complete

  std::string_view merge_part(size_t i) const {
    const uint64_t start = i == 0 ? 0 : merge_ends[i - 1];
    return {merge_bytes.data() + start, merge_ends[i] - start};
  }
  // What merge i makes.
  std::string_view product(size_t i) const {
    const uint64_t start = i == 0 ? 0 : merge_ends[2 * i - 1];
    return {merge_bytes.data() + start, merge_ends[2 * i + 1] - start};
  }
};

// How entries are spelled: in the byte alphabet, or as they are; unread: only the places of the values are
// wanted.
enum class Spelling { byte_alphabet, text, unread };

// nullopt for a document without the two values, and where it is no JSON as far as it was looked at: not
// beyond what finding them takes.
std::optional<ModelJson> read_model_json(std::string_view document, Spelling spelling);

// The document with {} and [] in place of the two values.
std::string outline(std::string_view document, const ModelJson &model);

// A line `base64 rank` per entry, with any blanks around the two; empty lines are skipped. "=" spells the
// empty entry: its rank goes to empty_rank.
EntryList read_rank_file(std::string_view data, Fault &fault, std::optional<uint32_t> &empty_rank);

} // namespace bpe
