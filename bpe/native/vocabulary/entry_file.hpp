// The entries and merges of a tokenizer file, read before it is known which entries are special tokens.
//
// Two formats: the model of a tokenizer.json, and tiktoken's rank file. The scanner of a tokenizer.json reads
// model.vocab and model.merges only. Python reads everything else from the outline, which replaces the two
// values: 200,000 entries and 450,000 merges would cost Python a second and 150 MB.
#pragma once

#include "text/special_tokens.hpp"
#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace bpe {

struct EntryList {
  std::vector<uint32_t> ids; // in file order, <= 2^31 - 1
  std::string bytes;         // of all entries, concatenated
  std::vector<uint64_t> ends;

  size_t size() const { return ids.size(); }
  std::string_view operator[](size_t i) const {
    const uint64_t start = i == 0 ? 0 : ends[i - 1];
    return {bytes.data() + start, ends[i] - start};
  }
  void add(uint32_t id) { // the bytes were appended before
    ids.push_back(id);
    ends.push_back(bytes.size());
  }
};

// The first malformed item. The file is then read up to this item.
struct Fault {
  enum Kind {
    none,
    json,   // not JSON; start: offset of the error
    utf8,   // not UTF-8; start: offset of the error
    vocab,  // model.vocab is not an object
    merges, // model.merges is not a list
    key,    // a key of model.vocab is not a valid string
    id,     // an ID is not an integer in [0, 2^31 - 1]; name: its key
    merge,  // item `index` of model.merges is not two strings
    line,   // line `index` of a rank file is not `base64 rank`
  } kind = none;
  size_t index = 0;
  size_t start = 0, stop = 0; // of the value in the file
  std::string name;
};

class EntryFile {
public:
  EntryFile() = default;
  // Cost: one pass over the document. Entries and merge parts are the text of their JSON strings.
  static EntryFile from_model_json(std::string_view document);
  // A line `base64 rank` per entry, with any blanks around both; empty lines are skipped. "=" is the empty
  // entry, which becomes a text.
  static EntryFile from_rank_file(std::string_view data);
  // merges: two indexes of entries per merge; nullopt for a rank file. Throws std::invalid_argument for
  // another number of ends than IDs, ends that descend or leave the bytes, and indexes without an entry.
  static EntryFile from_arrays(EntryList entries, const std::optional<std::vector<uint32_t>> &merges);

  // Without entries; filled by add_entry() and add_merge(). An empty entry becomes a text.
  explicit EntryFile(bool has_merges) : has_merges_(has_merges) {}
  void add_entry(uint32_t id, std::string_view bytes);
  void add_merge(std::string_view left, std::string_view right);

  const Fault &fault() const { return fault_; }
  const EntryList &entries() const { return entries_; }
  // Keys of model.vocab that are not entries, and their IDs: the empty key, and keys outside the byte
  // alphabet. Throws std::invalid_argument for a duplicate key.
  const std::vector<std::pair<std::string, uint32_t>> &texts() const { return texts_; }
  size_t merge_count() const { return merge_ends_.size() / 2; }
  std::string_view merge_part(size_t i) const { // 2k: left part of merge k, 2k + 1: its right part
    const uint64_t start = i == 0 ? 0 : merge_ends_[i - 1];
    return {merge_bytes_.data() + start, merge_ends_[i] - start};
  }

  // The document with {} and [] as the values of model.vocab and model.merges. Line numbers stay the same.
  std::string outline(std::string_view document) const;
  // Replace entries and merge parts by the bytes they spell in GPT-2's byte alphabet. Returns the index of
  // the first merge part with another character, if any; the file must not be used in that case.
  std::optional<size_t> spell_bytes();

  size_t size() const { return entries_.size() + texts_.size(); }
  int64_t max_id() const; // -1 without entries
  bool has_id(int64_t id) const;
  // Return the IDs of entries. Cost: one pass over all entries.
  std::vector<std::optional<uint32_t>> find(const std::vector<std::string_view> &wanted) const;
  // Return the texts that a merge joins or produces. A merge removes prefix_bytes from its right part.
  std::unordered_set<std::string_view> used_by_merges(const std::unordered_set<std::string_view> &texts,
                                                      size_t prefix_bytes) const;

  // Throws std::invalid_argument for two entries with one ID.
  void require_unique_ids() const;
  // Throws std::invalid_argument for a merge that is listed twice.
  void require_unique_merges() const;
  // The entries for text between special tokens. They include the entry of a special token if merging starts
  // with it or merges use it.
  std::vector<Vocabulary::Entry> ordinary_entries(const std::vector<SpecialToken> &special_tokens,
                                                  const std::optional<TextRules> &rules) const;
  std::optional<Vocabulary::Merges> merges() const; // nullopt for a rank file

private:
  friend class ModelReader;
  EntryList entries_;
  std::vector<std::pair<std::string, uint32_t>> texts_;
  bool has_merges_ = false;
  std::string merge_bytes_; // of all parts, concatenated
  std::vector<uint64_t> merge_ends_;
  struct Span {
    size_t start = 0, stop = 0;
  } vocab_, merges_; // of the two values in the document; empty: absent
  Fault fault_;
};

} // namespace bpe
