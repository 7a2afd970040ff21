// The scanner of tokenizer.json agrees with a reader that builds objects, as text and in the byte alphabet.
// For any bytes, offsets are consistent and the outline is idempotent.
//
// planted: bpe/native/vocabulary/read_model_json.cpp: `number > INT32_MAX` -> `number > UINT32_MAX`
#include "plain_json.hpp"

#include "vocabulary/byte_alphabet.hpp"
#include "vocabulary/entry_file.hpp"

namespace {

// Returns the bytes of an entry, or nullopt for a text with other characters.
std::optional<std::string> spelled(std::string_view text, bool as_text) {
  if (as_text)
    return std::string(text);
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const bpe::Char c = bpe::read_char(bpe::bytes_of(text) + at, bpe::bytes_of(text) + text.size());
    if (c.code_point >= bpe::ByteAlphabet::end || bpe::byte_alphabet.byte_of[c.code_point] < 0)
      return std::nullopt;
    bytes += static_cast<char>(bpe::byte_alphabet.byte_of[c.code_point]);
    at += c.length;
  }
  return bytes;
}

const fuzz::Json *member(const fuzz::Json &object, std::string_view name) {
  for (size_t i = 0; i < object.names.size(); ++i)
    if (object.names[i] == name)
      return &object.items[i];
  return nullptr;
}

bool has_halves(std::string_view text) {
  return bpe::validate_utf8(bpe::bytes_of(text), text.size()) < text.size();
}

// Valid JSON without lone surrogates: the scanner returns the entries of the document.
void check_entries(const fuzz::Json &vocab, const bpe::EntryFile &model, bool as_text,
                   std::string_view document) {
  size_t entry = 0, text = 0;
  for (size_t i = 0; i < vocab.names.size(); ++i) {
    const fuzz::Json &value = vocab.items[i];
    const std::string number(document.substr(value.start, value.stop - value.start));
    fuzz::expect(value.kind == fuzz::Json::number &&
                     number.find_first_not_of("0123456789") == std::string::npos && number.size() <= 10 &&
                     std::stoull(number) <= INT32_MAX,
                 "an id is a whole number up to 2^31 - 1");
    const auto bytes = spelled(vocab.names[i], as_text);
    if (bytes && !bytes->empty()) {
      fuzz::expect(entry < model.entries().size() && model.entries()[entry] == *bytes &&
                       model.entries().ids[entry] == std::stoull(number),
                   "a member of the vocabulary is an entry");
      ++entry;
    } else {
      const std::pair<std::string, uint32_t> wanted{vocab.names[i],
                                                    static_cast<uint32_t>(std::stoull(number))};
      fuzz::expect(std::count(model.texts().begin(), model.texts().end(), wanted) > 0,
                   "a member that is no entry stays text");
      ++text;
    }
  }
  fuzz::expect(entry == model.entries().size() && text == model.texts().size(), "no entry is made up");
}

void check_merges(const fuzz::Json &merges, const bpe::EntryFile &model, bool as_text) {
  fuzz::expect(model.merge_count() == merges.items.size(), "all merges are read");
  for (size_t i = 0; i < merges.items.size(); ++i) {
    const fuzz::Json &merge = merges.items[i];
    std::string left, right;
    if (merge.kind == fuzz::Json::list) {
      fuzz::expect(merge.items.size() == 2, "a merge is of two");
      left = merge.items[0].bytes;
      right = merge.items[1].bytes;
    } else {
      const size_t space = merge.bytes.find(' ');
      fuzz::expect(space != std::string::npos, "a merge in a line has a space");
      left = merge.bytes.substr(0, space);
      right = merge.bytes.substr(space + 1);
    }
    fuzz::expect(model.merge_part(2 * i) == spelled(left, as_text) &&
                     model.merge_part(2 * i + 1) == spelled(right, as_text),
                 "a merge is of its two parts");
  }
}

bool any_halves(const fuzz::Json &value) {
  return has_halves(value.bytes) || std::any_of(value.names.begin(), value.names.end(), has_halves) ||
         std::any_of(value.items.begin(), value.items.end(), any_halves);
}

bool twice(const fuzz::Json &object, std::string_view name) {
  return std::count(object.names.begin(), object.names.end(), name) > 1;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const bool as_text = input.flag();
  const fuzz::Exact document(input.rest());
  bpe::EntryFile file = bpe::EntryFile::from_model_json(document.view());
  const bpe::Fault &fault = file.fault();
  const auto object = fuzz::JsonReader(document.view(), " \t\r\n").read();
  const bool is_text = bpe::validate_utf8(document.data(), document.size()) == document.size();
  fuzz::expect((fault.kind == bpe::Fault::utf8) == !is_text, "other text than UTF-8 is a fault");
  fuzz::expect(fault.start <= fault.stop && fault.stop <= document.size(), "offsets are in the document");
  const bpe::EntryList &entries = file.entries();
  fuzz::expect(entries.ids.size() == entries.ends.size() &&
                   std::is_sorted(entries.ends.begin(), entries.ends.end()) &&
                   (entries.ends.empty() || entries.ends.back() <= entries.bytes.size()),
               "entries are concatenated");
  if (fault.kind != bpe::Fault::none)
    return 0;
  for (const uint32_t id : entries.ids)
    fuzz::expect(id <= INT32_MAX, "an id is at most 2^31 - 1");
  const std::string outline = file.outline(document.view());
  const bpe::EntryFile again = bpe::EntryFile::from_model_json(outline);
  fuzz::expect(again.outline(outline) == outline, "the outline of an outline is the outline");
  const fuzz::Json *const model =
      is_text && object && !any_halves(*object) ? member(*object, "model") : nullptr;
  if (!model || twice(*object, "model") || twice(*model, "vocab") || twice(*model, "merges") ||
      !member(*model, "vocab") || !member(*model, "merges"))
    return 0;
  if (as_text || !file.spell_bytes()) {
    check_entries(*member(*model, "vocab"), file, as_text, document.view());
    check_merges(*member(*model, "merges"), file, as_text);
  }
  return 0;
}
