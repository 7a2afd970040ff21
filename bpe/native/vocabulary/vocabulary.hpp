// A vocabulary with its merge rule, in the form that the encoder uses.
//
// Inside the core, an entry is a *symbol*: its index among the entries sorted by ID, starting at 0. There are
// three merge rules:
// - listed merges: exactly the listed pairs, ranked by their index in the list. For a pair listed twice, the
//   last index counts, as in Hugging Face tokenizers. Several pairs may make one entry.
// - rank file: every two entries that concatenate to an entry, ranked by the ID of that entry. At most one
//   split of an entry can occur (see rank_file_pairs), so the table contains one pair per entry.
// - whole pretokens (the encoder calls find()): a pretoken that is an entry is emitted at once.
// Entries that no merges make are allowed; only the last rule emits them.
//
// Entries may be text (text_rules.hpp). Merging then begins with characters. Merges of bytes can nearly
// always express this, so code for bytes also works for text: vocabulary_text.cpp adds hidden symbols and
// merges. If they cannot express it, merges_characters() holds and begin() returns the first symbols.
//
// Immutable and thread-safe. Building takes about 0.1 s for 200,000 entries. vocabulary.cpp implements the
// entries, vocabulary_pairs.cpp the merge rules.
#pragma once

#include "common/memory_limit.hpp"
#include "merge/merge_pretokens.hpp"
#include "vocabulary/text_rules.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe {

class Vocabulary {
public:
  struct Entry {
    uint32_t id; // <= 2^31 - 1
    std::string_view bytes;
  };
  using Merges = std::vector<std::pair<std::string_view, std::string_view>>;

  // The views must be valid during the call only. merges nullopt: a rank file. Throws std::invalid_argument
  // with the name of the invalid entry or merge: a byte without an entry, an empty entry, two entries with
  // the same bytes, a merge of or into bytes that are not an entry, more than 2^21 - 2 entries.
  // ignore_merges: find_unreachable will be called, which takes time per entry of a list. text: with merges
  // only.
  Vocabulary(std::vector<Entry> entries, const std::optional<Merges> &merges, bool ignore_merges,
             std::optional<TextRules> text = std::nullopt);
  // Build from training results: symbols 0 to 255 are the bytes in this order, and symbol 256 + k is the
  // product of merge k. The ID of a symbol is first_id higher. merges: the left and right symbol of each. No
  // parts or products of merges are searched for. The limit is checked before the entries are assembled,
  // including the decoder's copy. Throws std::invalid_argument for a merge of symbols not made yet, or into
  // bytes that are an entry.
  Vocabulary(const std::array<uint8_t, 256> &byte_order, const uint32_t *merges, size_t merge_count,
             uint32_t first_id, const MemoryLimit &limit);

  bool is_rank_file() const { return is_rank_file_; }
  // Return listed merges by rank, without duplicates; for a rank file, the one split of each entry that can
  // occur.
  std::vector<PairTable::Pair> pairs() const;
  size_t pair_count() const { return pairs_.size() - character_merges_.size(); }
  // Return every two entries that concatenate to an entry, ordered by that entry, then left and right. Two
  // symbols per pair.
  std::vector<uint32_t> every_split() const;

  size_t size() const { return ids_.size() - hidden_.size(); }
  uint32_t id(uint32_t symbol) const { return ids_[symbol]; }
  // Convert symbols to IDs in place and return the number of IDs, at most the number of bytes of the symbols.
  // Does nothing if IDs are consecutive from 0, as in most vocabularies.
  size_t to_ids(uint32_t *symbols, size_t count) const {
    if (ids_are_symbols_)
      return count;
    for (size_t i = 0; i < count; ++i)
      symbols[i] = ids_[symbols[i]];
    return hidden_.empty() ? count : replace_hidden(symbols, count);
  }
  std::string_view bytes(uint32_t symbol) const {
    return {bytes_.data() + starts_[symbol], starts_[symbol + 1] - starts_[symbol]};
  }
  // The bytes of all entries, concatenated, and the start of each entry; at size(), the end.
  std::string_view all_bytes() const { return bytes_; }
  size_t start(uint32_t symbol) const { return starts_[symbol]; }
  // Return how many bytes of a text the symbol represents.
  uint32_t text_size(uint32_t symbol) const;
  std::string in_text(uint32_t symbol) const; // the entry as it appears in a text
  const std::optional<TextRules> &text_rules() const { return text_; }
  // Return whether the first symbols of a pretoken come from begin() instead of its bytes.
  bool merges_characters() const { return merges_characters_; }
  // Return whether adjacent unknown characters are one token.
  bool fuses_unknown() const {
    return text_ && text_->fuse_unk && !text_->byte_fallback && !text_->byte_level && !merges_characters_;
  }
  void begin(const uint8_t *text, size_t size, std::vector<uint32_t> &symbols) const;
  // Return every pair of characters that are entries and adjacent in the product of a merge, as code points
  // of a text: left << 32 | right, ascending.
  std::vector<uint64_t> joined_characters() const;
  // Return the bytes of the entry with this ID, if any.
  std::optional<std::string_view> entry(uint64_t id) const;
  // Return the symbol with these bytes, or PairTable::no_symbol.
  uint32_t find(std::string_view bytes) const;
  // The same for entries that the merges of their bytes do not make; others need no look-up.
  uint32_t find_unreachable(std::string_view bytes) const;
  bool all_reachable() const { return unreachable_count_ == 0; }

  uint32_t symbol_of_byte(uint8_t byte) const { return symbol_of_byte_[byte]; }
  uint32_t rank(uint32_t left, uint32_t right) const { return pairs_.rank(left, right); }
  // rank() of the symbols of two bytes.
  uint32_t rank_of_bytes(uint8_t left, uint8_t right) const {
    return merge_tables().rank_of_bytes(left, right);
  }
  // Return the symbol that a merge of this rank makes.
  uint32_t product(uint32_t rank) const { return products_.empty() ? rank : products_[rank]; }
  MergeTables merge_tables() const {
    return {symbol_of_byte_, byte_pairs_.data(), pairs_hold_symbols_,
            products_.empty() ? nullptr : products_.data(), pairs_.view()};
  }
  // Return false if the two bytes are adjacent in no entry, so that no merge crosses between them.
  bool may_join(uint8_t left, uint8_t right) const { return joined_[left << 8 | right]; }
  const uint8_t *joined_bytes() const { return joined_.data(); } // the same, [left << 8 | right]

private:
  // Open addressing, at most half full; symbol no_symbol: empty.
  struct IndexSlot {
    uint32_t hash, symbol;
  };
  using Index = std::vector<IndexSlot>;

  // An ID that represents the bytes of a hidden symbol.
  static constexpr uint32_t hidden_id = 1u << 31;
  struct Hidden {
    uint8_t bytes[3];
    uint8_t size;
  };

  bool merges_bytes(const Merges &merges) const;
  bool lacks_only_bytes_outside_utf8() const;
  void list_byte_entries();
  void list_text_symbols(bool merges_bytes);
  size_t replace_hidden(uint32_t *ids, size_t count) const;
  void index_entries();
  void list_bytes();
  void list_neighbours();
  static void check_entry_count(size_t entries);
  std::vector<PairTable::Pair> listed_pairs(const Merges &merges);
  std::vector<PairTable::Pair> rank_file_pairs(std::vector<uint32_t> &unreachable) const;
  std::vector<uint32_t> list_unreachable() const;
  void index_unreachable(const std::vector<uint32_t> &symbols);
  void find_all(const std::string_view *wanted, size_t count, uint32_t *symbols) const;
  uint32_t find_in(const Index &index, std::string_view bytes) const;

  bool is_rank_file_;
  std::vector<uint32_t> ids_; // by symbol, hidden ones last
  bool ids_are_symbols_ = false;
  std::string bytes_; // of all entries, concatenated
  std::vector<uint64_t> starts_;
  Index index_, unreachable_;
  size_t unreachable_count_ = 0;
  uint32_t symbol_of_byte_[256];
  PairTable pairs_;
  std::vector<uint32_t>
      products_; // by rank; empty if the rank is the product (rank files, and lists in ID order)
  std::vector<uint32_t> byte_pairs_; // see MergeTables
  bool pairs_hold_symbols_ = false;
  std::vector<uint8_t> joined_;
  // Only used for text entries.
  std::optional<TextRules> text_;
  bool merges_characters_ = false;
  std::vector<Hidden> hidden_;
  std::array<uint32_t, 256> byte_symbols_;        // of the byte entries, if characters may become them
  uint32_t unk_symbol_ = 0;                       // valid if there is an unknown token
  std::vector<PairTable::Pair> character_merges_; // ranked before the listed ones
};

// Format bytes like Python, b'ab\x00', for messages.
std::string quoted(std::string_view bytes);

} // namespace bpe
