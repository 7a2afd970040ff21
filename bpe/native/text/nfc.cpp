#include "text/nfc.hpp"

#include "text/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace bpe {

namespace {

constexpr uint8_t doubtful = 255;
constexpr uint32_t code_points = 0x110000;
constexpr uint32_t page_size = 64; // code points: what the last byte of a UTF-8 sequence tells apart

using Page = std::array<uint8_t, page_size>;

struct Table {
  std::vector<uint16_t> page_numbers;
  std::vector<Page> pages;
  // By first byte: the length of the characters that begin with it if they are all clean, else 0.
  uint8_t clean_length[256] = {};

  Table() {
    std::vector<uint8_t> classes(code_points);
    for (size_t i = 0; i < nfc_run_count; ++i) {
      const uint32_t stop = i + 1 < nfc_run_count ? nfc_runs[i + 1].start : code_points;
      std::fill(classes.begin() + nfc_runs[i].start, classes.begin() + stop, nfc_runs[i].number);
    }
    std::map<Page, uint16_t> known;
    for (uint32_t start = 0; start < code_points; start += page_size) {
      Page page;
      std::copy_n(classes.begin() + start, page_size, page.begin());
      const auto [place, is_new] = known.emplace(page, static_cast<uint16_t>(pages.size()));
      if (is_new)
        pages.push_back(page);
      page_numbers.push_back(place->second);
    }
    const auto all_clean = [&](uint32_t start, uint32_t stop) {
      return std::all_of(classes.begin() + start, classes.begin() + stop, [](uint8_t c) { return c == 0; });
    };
    for (uint32_t lead = 0; lead < 0x80; ++lead)
      clean_length[lead] = 1;
    for (uint32_t lead = 0xC2; lead < 0xE0; ++lead)
      clean_length[lead] = all_clean((lead & 31) << 6, ((lead & 31) + 1) << 6) ? 2 : 0;
    for (uint32_t lead = 0xE1; lead < 0xF0; ++lead) // of E0 not all are characters
      clean_length[lead] = all_clean((lead & 15) << 12, ((lead & 15) + 1) << 12) ? 3 : 0;
  }

  uint8_t operator[](uint32_t code_point) const {
    return pages[page_numbers[code_point / page_size]][code_point % page_size];
  }
};

const Table &table() {
  static const Table made;
  return made;
}

} // namespace

std::vector<uint64_t> doubtful_for_nfc(const uint8_t *text, size_t size) {
  const Table &classes = table();
  std::vector<uint64_t> found;
  const uint8_t *p = text, *const stop = text + size;
  const uint8_t *stretch = text;
  bool in_doubt = false;
  uint8_t last = 0; // the class of the mark before
  const auto end_stretch = [&] {
    if (in_doubt) {
      const uint64_t start = static_cast<uint64_t>(stretch - text), end = static_cast<uint64_t>(p - text);
      if (!found.empty() && found.back() == start) {
        found.back() = end;
      } else {
        found.push_back(start);
        found.push_back(end);
      }
    }
    stretch = p;
    in_doubt = false;
    last = 0;
  };
  while (p < stop) {
    uint64_t word;
    if (stop - p >= 8 && (std::memcpy(&word, p, 8), (word & 0x8080808080808080ull) == 0)) {
      end_stretch();
      p += 8;
      stretch = p - 1;
      continue;
    }
    if (const uint8_t length = classes.clean_length[*p]; length != 0) {
      end_stretch();
      p += std::min<ptrdiff_t>(length, stop - p);
      continue;
    }
    const Char c = read_char(p, stop);
    const uint8_t number = classes[c.code_point];
    if (number == 0) {
      end_stretch();
    } else {
      in_doubt = in_doubt || number == doubtful || number < last;
      last = number;
    }
    p += c.length;
  }
  end_stretch();
  return found;
}

} // namespace bpe
