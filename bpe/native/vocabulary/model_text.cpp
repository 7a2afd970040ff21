#include "vocabulary/model_text.hpp"

#include "vocabulary/byte_alphabet.hpp"

#include <charconv>

namespace bpe {

namespace {

// What each byte is within a JSON string, in UTF-8: its character of the alphabet, escaped where it must be.
struct Spelling {
  char text[3];
  uint8_t size;
};

constexpr auto spellings = [] {
  struct {
    Spelling of[256];
  } table{};
  for (int byte = 0; byte < 256; ++byte) {
    const uint16_t character = byte_alphabet.character_of[static_cast<size_t>(byte)];
    Spelling &spelling = table.of[byte];
    if (character >= 0x80)
      spelling = {{static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 63))}, 2};
    else if (character == '"' || character == '\\')
      spelling = {{'\\', static_cast<char>(character)}, 2};
    else
      spelling = {{static_cast<char>(character)}, 1};
  }
  return table;
}();

void append_entry(std::string &out, std::string_view entry) {
  for (const char byte : entry) {
    const Spelling &spelling = spellings.of[static_cast<uint8_t>(byte)];
    out.append(spelling.text, spelling.size);
  }
}

void append_number(std::string &out, uint32_t number) {
  char digits[10];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end.ptr);
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

std::string vocab_json(const Vocabulary &vocabulary,
                       const std::vector<std::pair<uint32_t, std::string_view>> &special_keys) {
  std::string out = "{";
  out.reserve(20 * vocabulary.size() + 64);
  auto special = special_keys.begin();
  const auto append_special = [&] {
    out.append(special->second) += ':';
    append_number(out, special++->first);
    out += ',';
  };
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol) {
    const uint32_t id = vocabulary.id(symbol);
    while (special != special_keys.end() && special->first < id)
      append_special();
    if (special != special_keys.end() && special->first == id) {
      append_special();
      continue;
    }
    out += '"';
    append_entry(out, vocabulary.bytes(symbol));
    out += "\":";
    append_number(out, id);
    out += ',';
  }
  while (special != special_keys.end())
    append_special();
  out.back() = '}'; // a vocabulary has entries
  return out;
}

std::string merges_json(const Vocabulary &vocabulary, bool as_pairs) {
  const std::vector<uint32_t> symbols = listed_merges(vocabulary);
  std::string out = "[";
  out.reserve(15 * symbols.size() + 64);
  const std::string_view open = as_pairs ? "[\"" : "\"", between = as_pairs ? "\",\"" : " ",
                         close = as_pairs ? "\"]," : "\",";
  for (size_t i = 0; i < symbols.size(); i += 2) {
    out += open;
    append_entry(out, vocabulary.bytes(symbols[i]));
    out += between;
    append_entry(out, vocabulary.bytes(symbols[i + 1]));
    out += close;
  }
  if (symbols.empty())
    out += ']';
  else
    out.back() = ']';
  return out;
}

} // namespace bpe
