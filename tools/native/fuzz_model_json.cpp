// The large parts of a tokenizer.json as a reader that makes objects of it has them, in each spelling; of any
// other bytes places and numbers that fit together, and an outline that stays the same when it is read again.
//
// planted: bpe/native/vocabulary/read_model_json.cpp: `number > INT32_MAX` -> `number > UINT32_MAX`
#include "plain_json.hpp"

#include "vocabulary/byte_alphabet.hpp"
#include "vocabulary/entry_list.hpp"

namespace {

using bpe::Spelling;

// Nothing for a text with other characters.
std::optional<std::string> spelled(std::string_view text, Spelling spelling) {
  if (spelling == Spelling::text)
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

// Of good JSON without halves of surrogate pairs: what was read is what stands there.
void check_entries(const fuzz::Json &vocab, const bpe::ModelJson &model, Spelling spelling,
                   std::string_view document) {
  size_t entry = 0, text = 0;
  for (size_t i = 0; i < vocab.names.size(); ++i) {
    const fuzz::Json &value = vocab.items[i];
    const std::string number(document.substr(value.start, value.stop - value.start));
    fuzz::expect(value.kind == fuzz::Json::number &&
                     number.find_first_not_of("0123456789") == std::string::npos && number.size() <= 10 &&
                     std::stoull(number) <= INT32_MAX,
                 "an id is a whole number up to 2^31 - 1");
    if (const auto bytes = spelled(vocab.names[i], spelling)) {
      fuzz::expect(entry < model.entries.size() && model.entries[entry] == *bytes &&
                       model.entries.ids[entry] == std::stoull(number),
                   "a member of the vocabulary is an entry");
      ++entry;
    } else {
      fuzz::expect(text < model.texts.size() && model.texts[text].first == vocab.names[i] &&
                       model.texts[text].second == std::stoull(number),
                   "a member that is no entry stays text");
      ++text;
    }
  }
  fuzz::expect(entry == model.entries.size() && text == model.texts.size(), "no entry is made up");
}

void check_merges(const fuzz::Json &merges, const bpe::ModelJson &model, Spelling spelling) {
  fuzz::expect(model.merge_ends.size() == 2 * merges.items.size(), "all merges are read");
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
    fuzz::expect(model.merge_part(2 * i) == spelled(left, spelling) &&
                     model.merge_part(2 * i + 1) == spelled(right, spelling) &&
                     model.product(i) == *spelled(left, spelling) + *spelled(right, spelling),
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
  const Spelling spelling = static_cast<Spelling>(input.below(3));
  const fuzz::Exact document(input.rest());
  const auto model = bpe::read_model_json(document.view(), spelling);
  const auto object = fuzz::JsonReader(document.view(), " \t\r\n").read();
  const bool is_text = bpe::validate_utf8(document.data(), document.size()) == document.size();
  const fuzz::Json *const of_model =
      is_text && object && !any_halves(*object) ? member(*object, "model") : nullptr;
  const bool is_plain = of_model && !twice(*object, "model") && !twice(*of_model, "vocab") &&
                        !twice(*of_model, "merges") && member(*of_model, "vocab") &&
                        member(*of_model, "merges");
  fuzz::expect(model || !is_plain, "good JSON is read");
  if (!model)
    return 0;
  fuzz::expect(is_text && model->vocab_start <= model->vocab_stop && model->vocab_stop <= document.size() &&
                   model->merges_start <= model->merges_stop && model->merges_stop <= document.size(),
               "places are within the document");
  fuzz::expect(model->entries.ids.size() == model->entries.ends.size(), "each entry has an id and an end");
  for (size_t i = 0; i < model->entries.size(); ++i)
    fuzz::expect(model->entries.ids[i] <= INT32_MAX &&
                     model->entries.ends[i] <= model->entries.bytes.size() &&
                     (i == 0 || model->entries.ends[i] >= model->entries.ends[i - 1]),
                 "entries lie end to end");
  fuzz::expect(model->merge_ends.size() % 2 == 0 &&
                   std::is_sorted(model->merge_ends.begin(), model->merge_ends.end()) &&
                   (model->merge_ends.empty() || model->merge_ends.back() <= model->merge_bytes.size()),
               "merges lie end to end");
  const std::string outline = bpe::outline(document.view(), *model);
  const auto again = bpe::read_model_json(outline, Spelling::unread);
  fuzz::expect(again && bpe::outline(outline, *again) == outline, "an outline has the same outline");
  if (is_plain && spelling != Spelling::unread && model->fault.place == bpe::Fault::none) {
    check_entries(*member(*of_model, "vocab"), *model, spelling, document.view());
    check_merges(*member(*of_model, "merges"), *model, spelling);
  }
  return 0;
}
