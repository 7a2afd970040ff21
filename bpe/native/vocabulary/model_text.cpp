#include "vocabulary/model_text.hpp"

#include "vocabulary/byte_alphabet.hpp"

#include <charconv>

namespace bpe {

namespace {

// A byte in a JSON string: its character in the byte alphabet as UTF-8, escaped if necessary.
struct SpelledByte {
  char text[3];
  uint8_t size;
};

constexpr auto spellings = [] {
  struct {
    SpelledByte of[256];
  } table{};
  for (int byte = 0; byte < 256; ++byte) {
    const uint16_t character = byte_alphabet.character_of[static_cast<size_t>(byte)];
    SpelledByte &spelling = table.of[byte];
    if (character >= 0x80)
      spelling = {{static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 63))}, 2};
    else if (character == '"' || character == '\\')
      spelling = {{'\\', static_cast<char>(character)}, 2};
    else
      spelling = {{static_cast<char>(character)}, 1};
  }
  return table;
}();

// Write a byte of a JSON string like Python.
void append_character(std::string &out, char c) {
  constexpr const char *short_escapes = "btn?fr"; // of bytes 8 to 13
  constexpr const char *digits = "0123456789abcdef";
  const uint8_t byte = static_cast<uint8_t>(c);
  if (byte >= 0x20) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  } else if (byte >= 8 && byte <= 13 && byte != 11) {
    out += '\\';
    out += short_escapes[byte - 8];
  } else {
    out.append("\\u00");
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
}

void append_entry(std::string &out, std::string_view entry, bool is_text) {
  if (is_text) {
    for (const char c : entry)
      append_character(out, c);
    return;
  }
  for (const char byte : entry) {
    const SpelledByte &spelling = spellings.of[static_cast<uint8_t>(byte)];
    out.append(spelling.text, spelling.size);
  }
}

void append_number(std::string &out, uint32_t number) {
  char digits[10];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end.ptr);
}

bool is_text(const Vocabulary &vocabulary) {
  return vocabulary.text_rules() && !vocabulary.text_rules()->byte_level;
}

} // namespace

std::vector<uint32_t> listed_merges(const Vocabulary &vocabulary) {
  if (vocabulary.is_rank_file())
    return vocabulary.every_split();
  std::vector<uint32_t> symbols;
  symbols.reserve(2 * vocabulary.pair_count());
  for (const PairTable::Pair &pair : vocabulary.pairs()) {
    symbols.push_back(pair.left);
    symbols.push_back(pair.right);
  }
  return symbols;
}

VocabText::VocabText(const Vocabulary &vocabulary, std::vector<std::pair<uint32_t, std::string>> special_keys)
    : vocabulary_(vocabulary), special_keys_(std::move(special_keys)) {}

bool VocabText::next(std::string &out, size_t bytes) {
  out.clear();
  if (is_done_)
    return false;
  if (symbol_ == 0)
    out += '{';
  const auto append_special = [&] {
    out.append(special_keys_[special_].second) += ':';
    append_number(out, special_keys_[special_++].first);
    out += ',';
  };
  const auto is_special_next = [&] { return special_ < special_keys_.size(); };
  for (; symbol_ < vocabulary_.size() && out.size() < bytes; ++symbol_) {
    const uint32_t id = vocabulary_.id(symbol_);
    while (is_special_next() && special_keys_[special_].first < id)
      append_special();
    if (is_special_next() && special_keys_[special_].first == id) {
      append_special();
      continue;
    }
    out += '"';
    append_entry(out, vocabulary_.bytes(symbol_), is_text(vocabulary_));
    out += "\":";
    append_number(out, id);
    out += ',';
  }
  if (symbol_ == vocabulary_.size()) {
    while (is_special_next())
      append_special();
    if (out.back() == '{') // no entries
      out += '}';
    else
      out.back() = '}';
    is_done_ = true;
  }
  return true;
}

MergesText::MergesText(const Vocabulary &vocabulary, bool as_pairs)
    : vocabulary_(vocabulary), symbols_(listed_merges(vocabulary)), as_pairs_(as_pairs) {}

bool MergesText::next(std::string &out, size_t bytes) {
  out.clear();
  if (is_done_)
    return false;
  if (at_ == 0)
    out += '[';
  const std::string_view open = as_pairs_ ? "[\"" : "\"", between = as_pairs_ ? "\",\"" : " ",
                         close = as_pairs_ ? "\"]," : "\",";
  for (; at_ < symbols_.size() && out.size() < bytes; at_ += 2) {
    out += open;
    append_entry(out, vocabulary_.bytes(symbols_[at_]), is_text(vocabulary_));
    out += between;
    append_entry(out, vocabulary_.bytes(symbols_[at_ + 1]), is_text(vocabulary_));
    out += close;
  }
  if (at_ == symbols_.size()) {
    if (symbols_.empty())
      out += ']';
    else
      out.back() = ']';
    is_done_ = true;
  }
  return true;
}

} // namespace bpe
