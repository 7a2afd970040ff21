#include "normalize/normal_form.hpp"

#include "normalize/composing_pairs.hpp"
#include "normalize/unicode_tables.hpp"
#include "simd/simd_variants.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <cstring>

namespace bpe {

namespace {

constexpr uint8_t doubtful = 255;
constexpr uint32_t code_point_bits = 0x1FFFFF;

size_t utf8_length(uint32_t c) {
  return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

} // namespace

// The parts of a run. Short runs are stored on the stack.
class NormalForm::Parts {
public:
  void clear() { count_ = 0; }
  void push(uint32_t part) {
    if (count_ < few) {
      few_[count_] = part;
    } else {
      if (count_ == few)
        many_.assign(few_, few_ + few);
      many_.push_back(part);
    }
    ++count_;
  }
  uint32_t *begin() { return count_ <= few ? few_ : many_.data(); }
  uint32_t *end() { return begin() + count_; }
  size_t size() const { return count_; }

private:
  static constexpr size_t few = 32;
  uint32_t few_[few];
  std::vector<uint32_t> many_;
  size_t count_ = 0;
};

const NormalForm &NormalForm::get(bool composed, bool compatible) {
  if (composed && compatible) {
    static const NormalForm nfkc(true, true);
    return nfkc;
  }
  if (composed) {
    static const NormalForm nfc(true, false);
    return nfc;
  }
  if (compatible) {
    static const NormalForm nfkd(false, true);
    return nfkd;
  }
  static const NormalForm nfd(false, false);
  return nfd;
}

NormalForm::NormalForm(bool composed, bool compatible) : composed_(composed) {
  PageTable<uint8_t> combining;
  for_each_run(unicode::combining_class_runs, [&](uint32_t c, uint32_t stop, uint8_t number) {
    for (; number != 0 && c < stop; ++c) {
      combining.set(c, number);
      classes_.set(c, number);
      decompositions_.set(c, uint32_t{number} << 24);
    }
  });
  const auto add = [&](uint32_t c, std::span<const uint32_t> parts) {
    decompositions_.set(c, static_cast<uint32_t>(pool_.size()));
    pool_.push_back(static_cast<uint32_t>(parts.size()));
    size_t bytes = 0;
    for (const uint32_t part : parts) {
      pool_.push_back(uint32_t{combining[part]} << 24 | part);
      bytes += utf8_length(part);
    }
    max_growth_ = std::max(max_growth_, (bytes + utf8_length(c) - 1) / utf8_length(c));
    classes_.set(c, doubtful);
  };
  max_growth_ = 3; // a Hangul syllable has three parts
  for_each_mapping(unicode::canonical_decompositions, add);
  if (compatible)
    for_each_mapping(unicode::other_compatibility_decompositions, add);
  if (composed) {
    // Characters that decompose and compose to themselves again do not change.
    ComposingPairs::get().for_each([&](uint32_t, uint32_t, uint32_t made) {
      const uint32_t place = decompositions_[made];
      // Compatibility forms may have different parts.
      uint32_t c = pool_[place + 1] & code_point_bits;
      for (uint32_t i = 1; i < pool_[place] && c != 0; ++i)
        c = ComposingPairs::get().find(c, pool_[place + 1 + i] & code_point_bits);
      if (c == made)
        classes_.set(made, 0);
    });
    ComposingPairs::get().for_each(
        [&](uint32_t, uint32_t second, uint32_t) { classes_.set(second, doubtful); });
    for (uint32_t c = hangul::first_v; c < hangul::first_v + hangul::v_count; ++c)
      classes_.set(c, doubtful);
    for (uint32_t c = hangul::first_t + 1; c < hangul::first_t + hangul::t_count; ++c)
      classes_.set(c, doubtful);
  } else {
    for (uint32_t c = hangul::first; c < hangul::first + hangul::count; ++c)
      classes_.set(c, doubtful);
  }
  classes_.share_pages();
  decompositions_.share_pages();
  std::vector<uint32_t> unclean;
  classes_.for_each_set([&](uint32_t c) { unclean.push_back(c); });
  unclean_ = CharacterSet(unclean);
}

// Return the first span from p that may change, or an empty one at `stop`.
NormalForm::Stretch NormalForm::next_doubtful(const uint8_t *p, const uint8_t *stop) const {
  const auto find_in_set = simd_variant().find_in_set;
  constexpr ptrdiff_t near_bytes = 64; // of a mark; such scripts have more marks
  const uint8_t *const start = p, *far = p;
  while (p < stop) {
    if (p >= far)
      p = start +
          find_in_set(unclean_, start, static_cast<size_t>(p - start), static_cast<size_t>(stop - start));
    while (stop - p >= 3 && is_of_three(p) && !has_of_three(unclean_, p))
      p += 3;
    if (p == stop)
      break;
    Char c = read_char(p, stop);
    uint8_t number = classes_[c.code_point];
    if (number == 0) {
      p += c.length;
      continue;
    }
    const uint8_t *base = p; // the clean character before p, or p
    while (base > start && continues_character(*--base)) {
    }
    bool in_doubt = false;
    uint8_t last = 0; // class of the previous mark
    do {
      in_doubt = in_doubt || number == doubtful || number < last;
      last = number;
      p += c.length;
      if (p == stop)
        break;
      c = read_char(p, stop);
      number = classes_[c.code_point];
    } while (number != 0);
    if (in_doubt)
      return {base, p};
    far = p + std::min(near_bytes, stop - p);
  }
  return {stop, stop};
}

size_t NormalForm::first_change(const uint8_t *text, size_t size) const {
  return static_cast<size_t>(next_doubtful(text, text + size).start - text);
}

void NormalForm::append(const uint8_t *text, size_t size, ByteBuffer &out) const {
  const uint8_t *p = text, *const stop = text + size;
  Parts parts;
  for (;;) {
    const Stretch stretch = next_doubtful(p, stop);
    out.append(p, static_cast<size_t>(stretch.start - p));
    if (stretch.start == stop)
      return;
    if (!composed_ || !compose_directly(stretch, out))
      append_stretch(stretch, parts, out);
    p = stretch.stop;
  }
}

// If each character of the span composes with the result so far, append the result and return true. It is
// then the normal form, since a composition is always canonically equivalent to its two characters.
bool NormalForm::compose_directly(Stretch stretch, ByteBuffer &out) const {
  Char c = read_char(stretch.start, stretch.stop);
  const uint8_t *p = stretch.start + c.length;
  uint32_t made = c.code_point;
  if (classes_[made] != 0)
    return false;
  while (p < stretch.stop) {
    c = read_char(p, stretch.stop);
    made = compose(made, c.code_point);
    if (made == 0)
      return false;
    p += c.length;
  }
  uint8_t *const start = out.room(4);
  out.set_end(start + write_utf8(made, start));
  return true;
}

void NormalForm::decompose(Stretch stretch, Parts &parts) const {
  for (const uint8_t *p = stretch.start; p < stretch.stop;) {
    const Char c = read_char(p, stretch.stop);
    p += c.length;
    if (c.code_point - hangul::first < hangul::count) {
      const uint32_t index = c.code_point - hangul::first;
      parts.push(hangul::first_l + index / (hangul::v_count * hangul::t_count));
      parts.push(hangul::first_v + index / hangul::t_count % hangul::v_count);
      if (index % hangul::t_count != 0)
        parts.push(hangul::first_t + index % hangul::t_count);
      continue;
    }
    const uint32_t found = decompositions_[c.code_point];
    const uint32_t place = found & 0xFFFFFF;
    if (place == 0) {
      parts.push(found | c.code_point);
      continue;
    }
    for (uint32_t i = 1; i <= pool_[place]; ++i)
      parts.push(pool_[place + i]);
  }
}

void NormalForm::append_stretch(Stretch stretch, Parts &parts, ByteBuffer &buffer) const {
  parts.clear();
  decompose(stretch, parts);
  uint32_t *const begin = parts.begin(), *const end = parts.end();
  const auto class_of = [](uint32_t part) { return part >> 24; };
  for (uint32_t *p = begin; p < end;) { // runs of marks
    if (class_of(*p) == 0) {
      ++p;
      continue;
    }
    uint32_t *run = p;
    bool in_order = true;
    for (++p; p < end && class_of(*p) != 0; ++p)
      in_order = in_order && class_of(p[-1]) <= class_of(*p);
    if (!in_order)
      std::stable_sort(run, p, [&](uint32_t a, uint32_t b) { return class_of(a) < class_of(b); });
  }
  uint32_t *stop = end;
  if (composed_) {
    uint32_t *starter = nullptr;
    stop = begin;
    uint32_t last = 0;     // class of the last part kept after the starter
    bool adjacent = false; // no part was kept after the starter
    for (uint32_t *p = begin; p < end; ++p) {
      const uint32_t number = class_of(*p);
      if (starter && (adjacent || last < number) && classes_[*p & code_point_bits] == doubtful) {
        if (const uint32_t made = compose(*starter & code_point_bits, *p & code_point_bits)) {
          *starter = made;
          continue;
        }
      }
      if (number == 0) {
        starter = stop;
        adjacent = true;
      } else {
        adjacent = false;
      }
      last = number;
      *stop++ = *p;
    }
  }
  uint8_t *out = buffer.room(4 * static_cast<size_t>(stop - begin));
  for (const uint32_t *p = begin; p < stop; ++p)
    out += write_utf8(*p & code_point_bits, out);
  buffer.set_end(out);
}

} // namespace bpe
