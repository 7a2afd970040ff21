// A value per code point, in pages of 64 (one page per UTF-8 sequence without its last byte).
#pragma once

#include "text/utf8.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace bpe {

inline constexpr uint32_t code_point_count = 0x110000;

template <class Value> class PageTable {
public:
  static constexpr uint32_t page_size = 64;
  using Page = std::array<Value, page_size>;

  PageTable() : numbers_(code_point_count / page_size), pages_(1) {}

  Value operator[](uint32_t code_point) const {
    return pages_[numbers_[code_point / page_size]][code_point % page_size];
  }
  void set(uint32_t code_point, Value value) {
    uint16_t &number = numbers_[code_point / page_size];
    if (number == 0) {
      number = static_cast<uint16_t>(pages_.size());
      pages_.emplace_back();
    }
    pages_[number][code_point % page_size] = value;
  }
  // Calls give(code point) for each code point with a value other than 0, ascending.
  template <class Give> void for_each_set(Give give) const {
    for (uint32_t page = 0; page < numbers_.size(); ++page)
      for (uint32_t i = 0; numbers_[page] != 0 && i < page_size; ++i) // page 0 has no values
        if (pages_[numbers_[page]][i] != Value{})
          give(page * page_size + i);
  }
  // Merges equal pages.
  void share_pages() {
    if (pages_.size() <= few_pages)
      return;
    std::map<Page, uint16_t> known;
    std::vector<Page> pages;
    std::vector<uint16_t> number_of_old;
    for (const Page &page : pages_) {
      const auto [place, is_new] = known.emplace(page, static_cast<uint16_t>(pages.size()));
      if (is_new)
        pages.push_back(page);
      number_of_old.push_back(place->second);
    }
    for (uint16_t &number : numbers_)
      number = number_of_old[number];
    pages_ = std::move(pages);
  }
  // Returns by first byte the length of its characters if all of them have the value 0, else 0.
  std::array<uint8_t, 256> lengths_of_zero() const {
    std::array<uint8_t, 256> lengths{};
    const auto all_zero = [&](uint32_t start, uint32_t stop) {
      for (uint32_t c = start; c < stop; ++c)
        if ((*this)[c] != Value{})
          return false;
      return true;
    };
    for (uint32_t lead = 0; lead < 0x80; ++lead)
      lengths[lead] = all_zero(lead, lead + 1) ? 1 : 0;
    for (uint32_t lead = 0xC2; lead < 0xE0; ++lead)
      lengths[lead] = all_zero((lead & 31) << 6, ((lead & 31) + 1) << 6) ? 2 : 0;
    for (uint32_t lead = 0xE1; lead < 0xF0; ++lead) // E0 starts overlong sequences
      lengths[lead] = all_zero((lead & 15) << 12, ((lead & 15) + 1) << 12) ? 3 : 0;
    return lengths;
  }

private:
  static constexpr size_t few_pages = 16; // too few for a search

  std::vector<uint16_t> numbers_;
  std::vector<Page> pages_;
};

// Calls give(first, stop, class) for each run.
template <class Give> void for_each_run(std::span<const uint32_t> runs, Give give) {
  for (size_t i = 0; i < runs.size(); ++i)
    give(runs[i] >> 8, i + 1 < runs.size() ? runs[i + 1] >> 8 : code_point_count,
         static_cast<uint8_t>(runs[i] & 255));
}

// Calls give(code point) for each of a set.
template <class Give> void for_each_in(std::span<const uint32_t> set, Give give) {
  for (size_t i = 0; i < set.size(); i += 2)
    for (uint32_t c = set[i]; c <= set[i + 1]; ++c)
      give(c);
}

// Calls give(code point, image) for each mapping.
template <class Give> void for_each_mapping(std::span<const uint32_t> mappings, Give give) {
  for (size_t i = 0; i < mappings.size();) {
    const size_t length = mappings[i] >> 21;
    give(mappings[i] & 0x1FFFFF, mappings.subspan(i + 1, length));
    i += 1 + length;
  }
}

} // namespace bpe
