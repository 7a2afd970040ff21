// Writers of model.vocab and model.merges, which entry_file.hpp reads.
//
// The output equals Python's json.dumps with ensure_ascii=False and separators (",", ":"), byte for byte
// (tests/bpe/test_entry_files.py). Cost: about 0.1 s for 200,000 entries and 450,000 merges.
#pragma once

#include "vocabulary/vocabulary.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe {

// Listed merges, or all splits of a rank file's entries: two symbols per merge, lowest rank first.
std::vector<uint32_t> listed_merges(const Vocabulary &vocabulary);

// Both writers produce pieces of a given size, which bounds the memory. A longer entry or merge is a piece of
// its own size. next() writes a piece and returns false after the last one. bytes: at least 2. The vocabulary
// must outlive the writer.

// The object {entry in the byte alphabet, or as text: ID} by ascending ID. special_keys: ID and key (a JSON
// string with quotes) of each special token, by ascending ID. They replace an entry with the same ID.
class VocabText {
public:
  VocabText(const Vocabulary &vocabulary, std::vector<std::pair<uint32_t, std::string>> special_keys);
  bool next(std::string &out, size_t bytes);

private:
  const Vocabulary &vocabulary_;
  const std::vector<std::pair<uint32_t, std::string>> special_keys_;
  uint32_t symbol_ = 0;
  size_t special_ = 0;
  bool is_done_ = false;
};

// The list of merges, each ["left","right"] or "left right".
class MergesText {
public:
  MergesText(const Vocabulary &vocabulary, bool as_pairs);
  bool next(std::string &out, size_t bytes);

private:
  const Vocabulary &vocabulary_;
  const std::vector<uint32_t> symbols_; // left and right of each merge
  const bool as_pairs_;
  size_t at_ = 0;
  bool is_done_ = false;
};

} // namespace bpe
