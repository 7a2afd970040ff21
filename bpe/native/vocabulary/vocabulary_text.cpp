// Additions to a vocabulary with text entries: symbols for bytes, and merges that make characters.
//
// The text is UTF-8, so the bytes of one character never merge with the bytes of another: lead bytes and
// continuation bytes differ. Merges that rank before all listed ones make each character that is an entry
// from its bytes, with hidden symbols for its first two and three bytes. Symbols left that are not entries
// belong to characters without an entry. No listed merge contains them, so they remain until the end and
// become the IDs of their bytes or of the unknown token.
#include "text/utf8.hpp"
#include "vocabulary/vocabulary.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

namespace bpe {

namespace {

bool starts_character(uint8_t byte) {
  return (byte & 0xC0) != 0x80;
}

// Return the size of the first character of the text.
size_t character_size(std::string_view text) {
  const auto *const bytes = reinterpret_cast<const uint8_t *>(text.data());
  return read_char(bytes, bytes + text.size()).length;
}

} // namespace

std::string byte_entry(uint8_t byte) {
  constexpr const char *digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

std::string exchange_spaces(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(lower_block)) {
      out += ' ';
      at += lower_block.size();
    } else if (text[at] == ' ') {
      out += lower_block;
      ++at;
    } else {
      out += text[at++];
    }
  }
  return out;
}

// Return the entry as it appears in the text.
std::string Vocabulary::in_text(uint32_t symbol) const {
  return text_ && text_->has_spaces ? exchange_spaces(bytes(symbol)) : std::string(bytes(symbol));
}

// Return whether merges of bytes can express the rules. They cannot if the symbols of a character depend on
// its position, if an unknown character is dropped and its neighbours become adjacent, or if merges join what
// an unknown character becomes.
bool Vocabulary::merges_bytes(const Merges &merges) const {
  if (!text_->prefix.empty() || !text_->suffix.empty())
    return false;
  if (text_->byte_level)
    return lacks_only_bytes_outside_utf8();
  const bool known =
      std::find(byte_symbols_.begin(), byte_symbols_.end(), PairTable::no_symbol) == byte_symbols_.end();
  if (!known && (text_->byte_fallback || !text_->unk_id))
    return false;
  const auto is_of_unknown = [&](std::string_view entry) {
    return (entry.size() == 6 && entry.starts_with("<0x") && known &&
            std::find(byte_symbols_.begin(), byte_symbols_.end(), find(entry)) != byte_symbols_.end()) ||
           (text_->unk_id && entry == text_->unk_token);
  };
  std::string product;
  return std::none_of(merges.begin(), merges.end(), [&](const auto &merge) {
    const auto &[left, right] = merge;
    const size_t size = left.size() + right.size();
    product.clear();
    if (size == 6 || size == text_->unk_token.size())
      product.append(left).append(right);
    return is_of_unknown(left) || is_of_unknown(right) || is_of_unknown(product);
  });
}

// Return whether each byte that UTF-8 may contain has an entry, so that no text contains a byte without one.
bool Vocabulary::lacks_only_bytes_outside_utf8() const {
  for (unsigned byte = 0; byte < 0xF5; ++byte) {
    const char one = static_cast<char>(byte);
    if (byte != 0xC0 && byte != 0xC1 && find({&one, 1}) == PairTable::no_symbol)
      return false;
  }
  return true;
}

void Vocabulary::list_byte_entries() {
  byte_symbols_.fill(PairTable::no_symbol);
  for (unsigned byte = 0; byte < 256 && text_->byte_fallback; ++byte)
    byte_symbols_[byte] = find(byte_entry(static_cast<uint8_t>(byte)));
  text_->byte_fallback = std::any_of(byte_symbols_.begin(), byte_symbols_.end(),
                                     [](uint32_t symbol) { return symbol != PairTable::no_symbol; });
}

// Add symbols after the symbols of the entries, and list the bytes and pairs of bytes that become them.
void Vocabulary::list_text_symbols(bool merges_bytes) {
  // A text has room for one ID per byte.
  if (text_->byte_fallback && (!text_->prefix.empty() || !text_->suffix.empty()))
    throw std::invalid_argument("byte_fallback: not supported with continuing_subword_prefix or "
                                "end_of_word_suffix");
  if (text_->byte_fallback && text_->has_spaces && find(lower_block) == PairTable::no_symbol)
    throw std::invalid_argument("a space can't stand for U+2581, which is no entry");
  merges_characters_ = !merges_bytes;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    symbol_of_byte_[byte] = text_->byte_level ? find({&one, 1}) : PairTable::no_symbol;
  }
  const auto add_hidden = [&](uint32_t id, std::string_view bytes) {
    hidden_.push_back({{}, static_cast<uint8_t>(bytes.size())});
    std::copy(bytes.begin(), bytes.end(), hidden_.back().bytes);
    ids_.push_back(id);
    return static_cast<uint32_t>(ids_.size() - 1);
  };
  if (text_->unk_id)
    if (unk_symbol_ = find(text_->unk_token); unk_symbol_ == PairTable::no_symbol)
      unk_symbol_ = add_hidden(*text_->unk_id, "");
  if (merges_characters_)
    return;
  const auto hidden = [&](std::string_view bytes) {
    return add_hidden(hidden_id | static_cast<uint32_t>(hidden_.size()), bytes);
  };
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(byte);
    const std::string_view one(&character, 1);
    uint32_t &symbol = symbol_of_byte_[byte];
    if (!text_->byte_level && byte < 0x80)
      symbol = find(text_->has_spaces && byte == ' ' ? lower_block : one);
    if (symbol == PairTable::no_symbol)
      symbol = byte_symbols_[byte] != PairTable::no_symbol ? byte_symbols_[byte] : hidden(one);
  }
  if (text_->byte_level)
    return;
  std::unordered_map<std::string, uint32_t> made; // of the first bytes of characters
  for (uint32_t symbol = 0; symbol < size(); ++symbol) {
    const std::string_view entry = bytes(symbol);
    if (entry.size() < 2 || entry.size() > 4 || character_size(entry) != entry.size() ||
        (text_->has_spaces && entry == lower_block))
      continue;
    uint32_t left = symbol_of_byte_[static_cast<uint8_t>(entry[0])];
    for (size_t size = 2; size <= entry.size(); ++size) {
      const uint32_t right = symbol_of_byte_[static_cast<uint8_t>(entry[size - 1])];
      const auto [place, is_new] = made.try_emplace(std::string(entry.substr(0, size)), symbol);
      if (is_new) {
        if (size < entry.size())
          place->second = hidden(entry.substr(0, size));
        character_merges_.push_back({left, right, static_cast<uint32_t>(character_merges_.size())});
        products_.push_back(place->second);
      }
      left = place->second;
    }
  }
}

// Return how many bytes of the text a symbol represents.
uint32_t Vocabulary::text_size(uint32_t symbol) const {
  if (!text_)
    return static_cast<uint32_t>(bytes(symbol).size());
  if (symbol >= size())
    return hidden_[symbol - size()].size;
  const std::string_view entry = bytes(symbol);
  if (entry.size() == 6 && entry.starts_with("<0x") &&
      std::find(byte_symbols_.begin(), byte_symbols_.end(), symbol) != byte_symbols_.end())
    return 1;
  size_t size = entry.size();
  if (text_->has_spaces)
    for (size_t at = 0; at < entry.size(); ++at)
      size += entry[at] == ' ' ? 2u : entry.substr(at).starts_with(lower_block) ? size_t{0} - 2 : 0;
  return static_cast<uint32_t>(size);
}

// Replace hidden IDs in place.
size_t Vocabulary::replace_hidden(uint32_t *ids, size_t count) const {
  size_t more = 0, hidden_count = 0;
  for (size_t i = 0; i < count; ++i)
    if (ids[i] >= hidden_id) {
      ++hidden_count;
      more += hidden_[ids[i] - hidden_id].size - 1u;
    }
  if (hidden_count == 0)
    return count;
  if (text_->byte_fallback) {
    uint32_t *to = ids + count + more;
    for (size_t i = count; i-- > 0;) {
      if (ids[i] < hidden_id) {
        *--to = ids[i];
        continue;
      }
      const Hidden of = hidden_[ids[i] - hidden_id];
      for (size_t k = of.size; k-- > 0;)
        *--to = ids_[byte_symbols_[of.bytes[k]]];
    }
    return count + more;
  }
  // Emit the unknown token where a character starts.
  uint32_t *to = ids;
  bool is_unknown = false; // for the previous ID
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < hidden_id) {
      *to++ = ids[i];
      is_unknown = false;
    } else if (starts_character(hidden_[ids[i] - hidden_id].bytes[0])) {
      if (text_->unk_id && !(is_unknown && text_->fuse_unk))
        *to++ = *text_->unk_id;
      is_unknown = true;
    }
  }
  return static_cast<size_t>(to - ids);
}

// Compute the first symbols for merging if they are not the symbols of bytes, exactly like tokenizers. An
// unknown token that may be fused is inserted after the bytes of a character that follows it.
void Vocabulary::begin(const uint8_t *text, size_t size, std::vector<uint32_t> &symbols) const {
  symbols.clear();
  bool is_pending = false;
  const bool is_plain = text_->byte_level && text_->prefix.empty() && text_->suffix.empty();
  std::string unit;
  for (const uint8_t *at = text, *const stop = text + size; at < stop;) {
    const size_t length = text_->byte_level ? 1 : read_char(at, stop).length;
    uint32_t symbol;
    if (is_plain) {
      symbol = symbol_of_byte_[*at];
      unit.assign(at, at + 1);
    } else {
      unit.assign(at == text ? "" : text_->prefix);
      const std::string character(at, at + length);
      unit += text_->has_spaces ? exchange_spaces(character) : character;
      if (at + length == stop)
        unit += text_->suffix;
      symbol = find(unit);
    }
    at += length;
    if (symbol != PairTable::no_symbol) {
      if (is_pending)
        symbols.push_back(unk_symbol_);
      is_pending = false;
      symbols.push_back(symbol);
      continue;
    }
    const auto byte_symbol = [&](char byte) { return byte_symbols_[static_cast<uint8_t>(byte)]; };
    if (std::none_of(unit.begin(), unit.end(),
                     [&](char byte) { return byte_symbol(byte) == PairTable::no_symbol; })) {
      for (const char byte : unit)
        symbols.push_back(byte_symbol(byte));
    } else if (text_->unk_id) {
      if (is_pending && !text_->fuse_unk)
        symbols.push_back(unk_symbol_);
      is_pending = true;
    }
  }
  if (is_pending)
    symbols.push_back(unk_symbol_);
}

std::vector<uint64_t> Vocabulary::joined_characters() const {
  constexpr uint32_t mark = 0x2581;
  std::vector<bool> is_made(size()), is_known(0x110000);
  for (size_t rank = character_merges_.size(); rank < products_.size(); ++rank)
    is_made[products_[rank]] = true;
  if (products_.empty()) // ranks are products
    for (const PairTable::Pair &pair : pairs())
      is_made[pair.rank] = true;
  std::vector<uint64_t> joined;
  std::vector<uint64_t> seen(1 << 14, ~uint64_t{0}); // by hash, so that few repeat; no pair is all ones
  const auto next_character = [&](const uint8_t *&at, const uint8_t *stop) {
    const Char next = read_char(at, stop);
    at += next.length;
    if (text_->has_spaces && (next.code_point == ' ' || next.code_point == mark))
      return next.code_point ^ ' ' ^ mark;
    return next.code_point;
  };
  for (const bool pairs_wanted : {false, true})
    for (uint32_t symbol = 0; symbol < size(); ++symbol) {
      const std::string_view entry = bytes(symbol);
      const uint8_t *at = bytes_of(entry);
      const uint8_t *const stop = at + entry.size();
      uint32_t before = next_character(at, stop);
      if (!pairs_wanted)
        is_known[before] = is_known[before] || at == stop;
      while (pairs_wanted && is_made[symbol] && at < stop) {
        const uint32_t next = next_character(at, stop);
        const uint64_t pair = uint64_t{before} << 32 | next;
        uint64_t &slot = seen[pair * 0x9E3779B97F4A7C15ull >> 50];
        if (slot != pair && is_known[before] && is_known[next])
          joined.push_back(slot = pair);
        before = next;
      }
    }
  std::sort(joined.begin(), joined.end());
  joined.erase(std::unique(joined.begin(), joined.end()), joined.end());
  return joined;
}

} // namespace bpe
