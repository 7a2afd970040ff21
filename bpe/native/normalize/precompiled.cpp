#include "normalize/precompiled.hpp"

#include "normalize/grapheme_clusters.hpp"
#include "text/utf8.hpp"

#include <algorithm>

namespace bpe {

namespace {

constexpr size_t short_cluster_bytes = 5;

} // namespace

Precompiled::Precompiled(std::string_view charsmap) : table_(charsmap) {
  for_each_run(unicode::cluster_class_runs, [&](uint32_t c, uint32_t stop, uint8_t number) {
    for (; number != 0 && c < stop; ++c)
      characters_.set(c, number);
  });
  for (uint32_t c = 0; c < code_point_count; ++c) {
    uint8_t utf8[4];
    if (c == 0xD800)
      c = 0xE000;
    const size_t size = write_utf8(c, utf8);
    if (const auto found = replacement(utf8, size)) {
      characters_.set(c, characters_[c] | changes_bit);
      max_growth_ = std::max(max_growth_, (found->size() + size - 1) / size);
    }
  }
  const std::string_view texts = table_.texts();
  for (size_t start = 0; start < texts.size();) { // of clusters, two bytes at least
    const size_t stop = std::min(texts.find('\0', start), texts.size());
    max_growth_ = std::max(max_growth_, (stop - start + 1) / 2);
    start = stop + 1;
  }
  characters_.share_pages();
  for (uint32_t c = 0; c < 0x80; ++c)
    same_ascii_[c] = (characters_[c] & changes_bit) == 0 && c != '\r';
}

// Returns the replacement of the shortest key at the start of the text.
std::optional<std::string_view> Precompiled::replacement(const uint8_t *key, size_t size) const {
  const auto found = table_.shortest(key, size);
  return found ? std::optional(found->text) : std::nullopt;
}

const uint8_t *Precompiled::cluster_stop(const uint8_t *p, const uint8_t *stop) const {
  Char c = read_char(p, stop);
  ClusterRules rules(class_of(c.code_point));
  for (p += c.length; p < stop; p += c.length) {
    c = read_char(p, stop);
    if (!rules.goes_on(class_of(c.code_point)))
      return p;
  }
  return stop;
}

// Whether the character c at p is a cluster without reading further.
bool Precompiled::stands_alone(const uint8_t *p, Char c, const uint8_t *stop) const {
  p += c.length;
  return class_of(c.code_point) == unicode::other &&
         (p == stop || class_of(read_char(p, stop).code_point) == unicode::other);
}

// Skips unchanged ASCII characters that are clusters.
const uint8_t *Precompiled::skip_same_ascii(const uint8_t *p, const uint8_t *stop) const {
  while (p < stop && same_ascii_[*p] && (p + 1 == stop || p[1] < 0x80))
    ++p;
  return p;
}

size_t Precompiled::first_change(const uint8_t *text, size_t size) const {
  const uint8_t *p = text, *const stop = text + size;
  for (;;) {
    p = skip_same_ascii(p, stop);
    if (p == stop)
      return size;
    if (const Char c = read_char(p, stop); stands_alone(p, c, stop)) {
      if (characters_[c.code_point] & changes_bit)
        return static_cast<size_t>(p - text);
      p += c.length;
      continue;
    }
    const uint8_t *const next = cluster_stop(p, stop);
    if (static_cast<size_t>(next - p) <= short_cluster_bytes && replacement(p, static_cast<size_t>(next - p)))
      return static_cast<size_t>(p - text);
    for (const uint8_t *q = p; q < next;) {
      const Char c = read_char(q, next);
      if (characters_[c.code_point] & changes_bit)
        return static_cast<size_t>(p - text);
      q += c.length;
    }
    p = next;
  }
}

void Precompiled::append(const uint8_t *text, size_t size, ByteBuffer &out) const {
  const auto append_text = [&](std::string_view made) {
    out.append(reinterpret_cast<const uint8_t *>(made.data()), made.size());
  };
  const uint8_t *p = text, *const stop = text + size;
  const uint8_t *copied = p; // `out` has the text before it
  const auto copy_up_to = [&](const uint8_t *place) {
    out.append(copied, static_cast<size_t>(place - copied));
  };
  for (;;) {
    p = skip_same_ascii(p, stop);
    if (p == stop)
      break;
    if (const Char c = read_char(p, stop); stands_alone(p, c, stop)) {
      if (characters_[c.code_point] & changes_bit) {
        copy_up_to(p);
        append_text(*replacement(p, c.length));
        copied = p + c.length;
      }
      p += c.length;
      continue;
    }
    const uint8_t *const next = cluster_stop(p, stop);
    const size_t cluster_bytes = static_cast<size_t>(next - p);
    const Char first = read_char(p, next);
    if (cluster_bytes <= short_cluster_bytes && cluster_bytes > first.length) {
      if (const auto made = replacement(p, cluster_bytes)) {
        copy_up_to(p);
        append_text(*made);
        copied = p = next;
        continue;
      }
    }
    while (p < next) {
      const Char c = read_char(p, next);
      if (characters_[c.code_point] & changes_bit) {
        copy_up_to(p);
        append_text(*replacement(p, c.length));
        copied = p + c.length;
      }
      p += c.length;
    }
  }
  copy_up_to(stop);
}

bool Precompiled::is_border(uint32_t code_point) const {
  const unicode::ClusterClass number = class_of(code_point);
  return number == unicode::other || number == unicode::control || number == unicode::cr ||
         number == unicode::lf;
}

bool Precompiled::is_border_between(uint32_t before, uint32_t behind) const {
  const unicode::ClusterClass number = class_of(before);
  return is_border(behind) && number != unicode::prepend && number != unicode::cr;
}

} // namespace bpe
