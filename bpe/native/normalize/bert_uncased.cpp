#include "normalize/bert_uncased.hpp"

#include "normalize/normal_form.hpp"
#include "normalize/unicode_tables.hpp"
#include "text/utf8.hpp"

#include <string>

namespace bpe {

namespace {

const NormalForm &decomposed() {
  return NormalForm::get(false, false);
}

} // namespace

const BertUncased &BertUncased::get() {
  static const BertUncased made;
  return made;
}

BertUncased::BertUncased()
    : cleaned_(clean_map(unicode::bert_removed, unicode::bert_spaces).followed_by(spaced_ideographs_map())),
      lowered_(removing_map(unicode::nonspacing_marks).followed_by(lower_case_map())) {
  PageTable<uint8_t> nonspacing;
  for_each_in(unicode::nonspacing_marks, [&](uint32_t c) { nonspacing.set(c, 1); });
  CharacterMap form;
  ByteBuffer image;
  for (uint32_t c = 0x80; c < code_point_count; ++c) {
    if (decomposed().is_border(c) || (c >= 0xD800 && c < 0xE000))
      continue;
    uint8_t utf8[4];
    const size_t size = write_utf8(c, utf8);
    image.clear();
    decomposed().append(utf8, size, image);
    const std::string made(reinterpret_cast<const char *>(image.data()), image.size());
    if (made != std::string(reinterpret_cast<const char *>(utf8), size))
      form.replace(c, made);
    const uint8_t *p = image.data(), *const stop = p + image.size();
    for (bool is_first = true; p < stop; is_first = false) {
      const Char part = read_char(p, stop);
      p += part.length;
      if ((!is_first || part.code_point == c) && !decomposed().is_border(part.code_point) &&
          !nonspacing[part.code_point])
        ordered_.replace(c, "");
    }
  }
  form.finish();
  ordered_.finish();
  all_ = cleaned_.followed_by(form.followed_by(lowered_));
}

void BertUncased::append(const uint8_t *text, size_t size, ByteBuffer &out) const {
  if (ordered_.first_change(text, size) == size)
    return all_.append(text, size, out);
  ByteBuffer cleaned, form;
  cleaned_.append(text, size, cleaned);
  decomposed().append(cleaned.data(), cleaned.size(), form);
  lowered_.append(form.data(), form.size(), out);
}

// Marks that have an order are looked for from there on, as what stays before has none.
size_t BertUncased::first_change(const uint8_t *text, size_t size) const {
  return std::min(all_.first_change(text, size), ordered_.first_change(text, size));
}

bool BertUncased::is_border(uint32_t code_point) const {
  return decomposed().is_border(code_point);
}

} // namespace bpe
