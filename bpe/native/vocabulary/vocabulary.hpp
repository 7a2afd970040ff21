// A vocabulary with its merge rule, in the form the encoder works on.
//
// Inside the core an entry is a *symbol*: its place among the entries sorted by id, 0 first. Three rules lead
// here:
// - listed merges: just those pairs, ranked by their place in the list (of a pair listed twice the last place
//   counts, as in Hugging Face tokenizers); several pairs may make one entry;
// - a rank file: every two entries whose bytes together are an entry, ranked by that entry's id. Of an
//   entry's splits at most one can come up (see rank_file_pairs), so the table holds one pair an entry;
// - whole pretokens (the encoder asks find()): a pretoken that is an entry is emitted at once.
// Entries that no merges reach may exist; they are emitted by the last rule only.
//
// Entries may be text (text_rules.hpp). Then merging begins with characters. Nearly always that is said by
// merges of bytes, so that all that works on bytes works on text, too: vocabulary_text.cpp adds symbols and
// merges that nobody sees. Where it can't be said, merges_characters(), begin() gives the first symbols.
//
// Immutable after construction, so any number of threads may read. Building costs about 0.1 s for 200,000
// entries. vocabulary.cpp has the entries, vocabulary_pairs.cpp what merges.
#pragma once

#include "common/memory_limit.hpp"
#include "merge/short_merge.hpp"
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

  // The views need to live during the call only. merges nullopt: a rank file.
  // Throws std::invalid_argument that names the entry or merge at fault: a byte without an entry, an empty
  // entry, two entries with the same bytes, a merge of or into bytes that are no entry, more than 2^21 - 2
  // entries. ignore_merges: find_unreachable will be called, which takes time for each entry of a list.
  // text: with merges only.
  Vocabulary(std::vector<Entry> entries, const std::optional<Merges> &merges, bool ignore_merges,
             std::optional<TextRules> text = std::nullopt);
  // What a training made: symbols 0 to 255 are the bytes in this order, symbol 256 + k is what merge k joins;
  // the id of a symbol is first_id more. merges: the symbols left and right of each. Costs no search for the
  // parts and the product of a merge. The limit is asked before the entries are put together, for the
  // decoder's copy of them too. Throws std::invalid_argument for a merge of what is not made yet, or of bytes
  // that are an entry.
  Vocabulary(const std::array<uint8_t, 256> &byte_order, const uint32_t *merges, size_t merge_count,
             uint32_t first_id, const MemoryLimit &limit);

  bool is_rank_file() const { return is_rank_file_; }
  // Listed merges by rank, a pair listed twice once; of a rank file the one split of each entry that can come
  // up.
  std::vector<PairTable::Pair> pairs() const;
  size_t pair_count() const { return pairs_.size() - character_merges_.size(); }
  // Every two entries whose bytes together are an entry: by that entry, then by left and right. Two symbols
  // each.
  std::vector<uint32_t> every_split() const;

  size_t size() const { return ids_.size() - hidden_.size(); }
  uint32_t id(uint32_t symbol) const { return ids_[symbol]; }
  // In place, symbols -> ids, of which there are as many as the symbols have bytes at most. Returns how many.
  // Nothing to do where ids run from 0 on without a gap, as most do.
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
  // Of all entries, end to end, and where one starts among them; at size() the end.
  std::string_view all_bytes() const { return bytes_; }
  size_t start(uint32_t symbol) const { return starts_[symbol]; }
  // How many bytes of a text the symbol stands for.
  uint32_t text_size(uint32_t symbol) const;
  std::string in_text(uint32_t symbol) const; // an entry as it stands in a text
  const std::optional<TextRules> &text_rules() const { return text_; }
  // Whether a pretoken's first symbols are what begin() gives, not those of its bytes.
  bool merges_characters() const { return merges_characters_; }
  // Whether neighbours that are unknown characters are one token.
  bool fuses_unknown() const {
    return text_ && text_->fuse_unk && !text_->byte_fallback && !text_->byte_level && !merges_characters_;
  }
  void begin(const uint8_t *text, size_t size, std::vector<uint32_t> &symbols) const;
  // Every two characters that are entries and that a merge's product has one behind the other, as code points
  // of a text: left << 32 | right, ascending.
  std::vector<uint64_t> joined_characters() const;
  // The bytes of the entry with this id, if there is one.
  std::optional<std::string_view> entry(uint64_t id) const;
  // The symbol with these bytes or PairTable::no_symbol.
  uint32_t find(std::string_view bytes) const;
  // The same for entries that their own bytes' merges do not make; the others need no looking up.
  uint32_t find_unreachable(std::string_view bytes) const;
  bool all_reachable() const { return unreachable_count_ == 0; }

  uint32_t symbol_of_byte(uint8_t byte) const { return symbol_of_byte_[byte]; }
  uint32_t rank(uint32_t left, uint32_t right) const { return pairs_.rank(left, right); }
  // rank() of two bytes' symbols.
  uint32_t rank_of_bytes(uint8_t left, uint8_t right) const {
    return merge_tables().rank_of_bytes(left, right);
  }
  // The symbol a merge of this rank makes.
  uint32_t product(uint32_t rank) const { return products_.empty() ? rank : products_[rank]; }
  MergeTables merge_tables() const {
    return {symbol_of_byte_, byte_pairs_.data(), pairs_hold_symbols_,
            products_.empty() ? nullptr : products_.data(), pairs_.view()};
  }
  // False if no entry holds these two bytes one after the other: then no merge crosses between them.
  bool may_join(uint8_t left, uint8_t right) const { return joined_[left << 8 | right]; }
  const uint8_t *joined_bytes() const { return joined_.data(); } // the same, [left << 8 | right]

private:
  // Open addressing, at most half full; symbol no_symbol: empty.
  struct IndexSlot {
    uint32_t hash, symbol;
  };
  using Index = std::vector<IndexSlot>;

  // An id that stands for the bytes of a hidden symbol.
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
  std::vector<uint32_t> ids_; // by symbol, the hidden ones last
  bool ids_are_symbols_ = false;
  std::string bytes_; // of all entries, end to end
  std::vector<uint64_t> starts_;
  Index index_, unreachable_;
  size_t unreachable_count_ = 0;
  uint32_t symbol_of_byte_[256];
  PairTable pairs_;
  std::vector<uint32_t>
      products_; // by rank; empty: the rank is the product (rank files, and lists in id order)
  std::vector<uint32_t> byte_pairs_; // see MergeTables
  bool pairs_hold_symbols_ = false;
  std::vector<uint8_t> joined_;
  // Of text.
  std::optional<TextRules> text_;
  bool merges_characters_ = false;
  std::vector<Hidden> hidden_;
  std::array<uint32_t, 256> byte_symbols_;        // of the entries of bytes, if characters may become these
  uint32_t unk_symbol_ = 0;                       // if there is an unknown token
  std::vector<PairTable::Pair> character_merges_; // that rank before the listed ones
};

// Bytes as Python would print them: b'ab\x00'. For messages.
std::string quoted(std::string_view bytes);

} // namespace bpe
