#include "normalize/charsmap.hpp"

#include "text/utf8.hpp"

#include <algorithm>

namespace bpe {

Charsmap::Charsmap(std::string_view charsmap) : table_(charsmap) {
  const std::string_view texts = table_.texts();
  for (size_t start = 0; start < texts.size();) {
    const size_t stop = std::min(texts.find('\0', start), texts.size());
    max_growth_ = std::max(max_growth_, stop - start);
    start = stop + 1;
  }
  for (uint8_t c = 0; c < 0x80; ++c) {
    same_ascii_[c] = !table_.longest(&c, 1);
    for (uint8_t next = 0; next < 0x80; ++next) {
      const uint8_t both[2] = {c, next};
      same_ascii_[c] = same_ascii_[c] && !table_.goes_on(both, 2);
    }
  }
}

const uint8_t *Charsmap::skip_same(const uint8_t *p, const uint8_t *stop) const {
  while (p < stop && same_ascii_[*p] && (p + 1 == stop || p[1] < 0x80))
    ++p;
  return p;
}

size_t Charsmap::first_change(const uint8_t *text, size_t size) const {
  const uint8_t *p = text, *const stop = text + size;
  while ((p = skip_same(p, stop)) < stop && !table_.longest(p, static_cast<size_t>(stop - p)))
    p += read_char(p, stop).length;
  return static_cast<size_t>(p - text);
}

void Charsmap::append(const uint8_t *text, size_t size, ByteBuffer &out) const {
  const uint8_t *p = text, *const stop = text + size;
  while (p < stop) {
    const uint8_t *const start = p;
    p += first_change(p, static_cast<size_t>(stop - p));
    out.append(start, static_cast<size_t>(p - start));
    if (p == stop)
      return;
    const CharsmapTable::Found found = *table_.longest(p, static_cast<size_t>(stop - p));
    out.append(reinterpret_cast<const uint8_t *>(found.text.data()), found.text.size());
    p += found.key_bytes;
  }
}

} // namespace bpe
