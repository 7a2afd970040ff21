// Text entries with rules for unknown characters, bytes, spaces, prefixes and suffixes: encoding matches a
// naive implementation of the rules, and decoding gives the text of the entries.
//
// planted: bpe/native/vocabulary/vocabulary_text.cpp: `if (text_->unk_id && !(is_unknown &&
// text_->fuse_unk))` -> `if (text_->unk_id && !is_unknown)`
#include "fuzz_rules.hpp"

#include "encode/decoder.hpp"
#include "encode/encoder.hpp"

namespace {

const std::string characters[] = {"a",      "b",          "c", " ", "\u2581", "\u00e9",
                                  "\u4e2d", "\U0001f600", "<", "x", "0",      "\n"};

fuzz::Rules read_rules(fuzz::Input &input) {
  fuzz::Rules rules;
  bpe::TextRules &text = rules.text.emplace();
  const uint8_t options = input.byte(), more = input.byte();
  text.fuse_unk = (options & 1) != 0;
  text.byte_fallback = (options & 2) != 0;
  if (options & 4)
    text.unk_id = 1u << 20;
  text.has_spaces = (options & 8) != 0;
  text.prefix = more % 4 == 1 ? "##" : "";
  text.suffix = more % 4 == 2 ? "</w>" : "";
  rules.ignore_merges = (options & 16) != 0;
  std::vector<std::string> parts;
  const uint32_t mask = static_cast<uint32_t>(input.below(65536));
  for (size_t i = 0; i < std::size(characters); ++i)
    if (mask >> i & 1 || (characters[i] == "\u2581" && text.has_spaces && text.byte_fallback))
      if (!(text.has_spaces && characters[i] == " "))
        parts.push_back(characters[i]);
  for (size_t i = 0, count = parts.size(); i < count && !(text.prefix + text.suffix).empty(); ++i)
    parts.push_back(text.prefix + parts[i] + text.suffix);
  if (parts.empty())
    parts.push_back("a");
  rules.entries = parts;
  if (text.byte_fallback)
    for (unsigned byte = 0; byte < 256; ++byte)
      if (!(more & 16) || byte % 3 != 0)
        rules.entries.push_back(bpe::byte_entry(static_cast<uint8_t>(byte)));
  if (text.unk_id) {
    text.unk_token = "<unk>";
    if (more & 32)
      rules.entries.push_back("<unk>");
  }
  fuzz::add_joined(rules, input, parts, 30, text.prefix);
  if (text.unk_id && (more & 32))
    for (size_t i = 0; i < rules.entries.size(); ++i)
      if (rules.entries[i] == "<unk>")
        text.unk_id = rules.ids[i];
  return rules;
}

// The rule of Hugging Face tokenizers.
std::vector<uint32_t> plain_ids(const fuzz::Rules &rules, const fuzz::PlainMerge &plain,
                                const std::string &pretoken) {
  const bpe::TextRules &text = *rules.text;
  const std::string spelled = text.has_spaces ? bpe::exchange_spaces(pretoken) : pretoken;
  if (rules.ignore_merges)
    if (const auto whole = plain.id_of(spelled))
      return {*whole};
  std::vector<std::string> symbols;
  bool is_pending = false;
  const auto put_unknown = [&] { symbols.push_back("<unk>"); };
  for (size_t at = 0; at < spelled.size();) {
    const size_t length =
        bpe::read_char(bpe::bytes_of(spelled) + at, bpe::bytes_of(spelled) + spelled.size()).length;
    std::string unit = (at == 0 ? "" : text.prefix) + spelled.substr(at, length);
    at += length;
    if (at == spelled.size())
      unit += text.suffix;
    std::vector<std::string> bytes;
    bool all_known = text.byte_fallback;
    for (const char byte : unit) {
      bytes.push_back(bpe::byte_entry(static_cast<uint8_t>(byte)));
      all_known = all_known && plain.id_of(bytes.back());
    }
    if (plain.id_of(unit)) {
      if (is_pending)
        put_unknown();
      is_pending = false;
      symbols.push_back(unit);
    } else if (all_known) {
      symbols.insert(symbols.end(), bytes.begin(), bytes.end());
    } else if (text.unk_id) {
      if (is_pending && !text.fuse_unk)
        put_unknown();
      is_pending = true;
    }
  }
  if (is_pending)
    put_unknown();
  std::vector<uint32_t> ids;
  for (const std::string &symbol : plain.merged(std::move(symbols)))
    ids.push_back(plain.id_of(symbol).value_or(text.unk_id.value_or(0)));
  return ids;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const fuzz::Rules rules = read_rules(input);
  const fuzz::PlainMerge plain(rules);
  std::unique_ptr<const bpe::Encoder> encoder;
  try {
    encoder = std::make_unique<bpe::Encoder>(
        bpe::Vocabulary(rules.entry_views(), rules.merge_views(), rules.ignore_merges, rules.text),
        bpe::FileComponents(), rules.ignore_merges, size_t{1} << 16);
  } catch (const std::invalid_argument &) { // contradictory rules
    return 0;
  }
  std::string all;
  std::vector<uint64_t> ends;
  std::vector<uint32_t> wanted;
  while (input.left() > 0) {
    std::string pretoken;
    for (size_t count = input.below(24) + 1; count > 0 && input.left() > 0; --count) {
      const uint8_t which = input.byte();
      pretoken += which < 200 ? characters[which % std::size(characters)]
                              : fuzz::hard_characters[which % std::size(fuzz::hard_characters)];
    }
    if (rules.text->has_spaces) // such text has no U+2581
      for (size_t at; (at = pretoken.find(bpe::lower_block)) != std::string::npos;)
        pretoken.replace(at, bpe::lower_block.size(), " ");
    all += pretoken;
    ends.push_back(all.size());
    for (const uint32_t id : plain_ids(rules, plain, pretoken))
      wanted.push_back(id);
  }
  const fuzz::Exact text(all);
  for (int turn = 0; turn < 2; ++turn) {
    const bpe::TokenBuffer found =
        encoder->encode_pretokens(text.view(), ends.data(), ends.size(), false).tokens;
    fuzz::expect(std::equal(found.data(), found.data() + found.size(), wanted.begin(), wanted.end()),
                 "text is encoded as its rules say");
  }
  std::vector<bpe::SpecialToken> special;
  if (rules.text->unk_id)
    special.push_back({"<unk>", *rules.text->unk_id});
  const bpe::Decoder decoder(encoder->vocabulary(), {},
                             bpe::TextDecoding{{{"\u2581", " "}}, " ", 1, special});
  std::string decoded, bytes;
  const auto end_bytes = [&] {
    const bool good = bpe::validate_utf8(bpe::bytes_of(bytes), bytes.size()) == bytes.size();
    for (const char byte : bytes)
      decoded += good ? std::string(1, byte) : "\uFFFD";
    bytes.clear();
  };
  std::map<uint32_t, std::string> entry_of;
  for (size_t i = 0; i < rules.entries.size(); ++i)
    entry_of[rules.ids[i]] = rules.entries[i];
  std::vector<int64_t> ids(wanted.begin(), wanted.end());
  for (const int64_t id : ids) {
    const auto known = entry_of.find(static_cast<uint32_t>(id));
    std::string entry = known == entry_of.end() ? "<unk>" : known->second;
    if (entry.size() == 6 && entry.starts_with("<0x") && entry[5] == '>') {
      bytes += static_cast<char>(std::stoi(entry.substr(3, 2), nullptr, 16));
      continue;
    }
    end_bytes();
    for (size_t at = 0; (at = entry.find("\u2581", at)) != std::string::npos; ++at)
      entry.replace(at, 3, " ");
    decoded += entry;
  }
  end_bytes();
  if (decoded.starts_with(" "))
    decoded.erase(0, 1);
  fuzz::expect(decoder.decode_text(ids.data(), ids.size(), true) == decoded,
               "ids decode to what their entries read");
  return 0;
}
