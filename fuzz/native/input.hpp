// Parses the bytes of one input into options, numbers and texts, and reports failures of a target.
#pragma once

#include "text/utf8.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace fuzz {

// Aborts if the rule does not hold. libFuzzer keeps the input.
inline void expect(bool holds, const char *rule) {
  if (holds)
    return;
  std::fprintf(stderr, "broken rule: %s\n", rule);
  std::abort();
}

// Reads from the front. After the end, it returns zeros and empty texts.
class Input {
public:
  Input(const uint8_t *data, size_t size) : at_(data), stop_(data + size) {}

  size_t left() const { return static_cast<size_t>(stop_ - at_); }
  uint8_t byte() { return at_ == stop_ ? 0 : *at_++; }
  bool flag() { return (byte() & 1) != 0; }
  // Returns a number in [0, stop), from one byte, or two if necessary.
  size_t below(size_t stop) {
    const size_t low = byte();
    return (stop <= 256 ? low : low << 8 | byte()) % stop;
  }
  std::string_view bytes(size_t count) {
    const std::string_view found(reinterpret_cast<const char *>(at_), std::min(count, left()));
    at_ += found.size();
    return found;
  }
  std::string_view rest() { return bytes(left()); }
  // Returns the rest, optionally with one part repeated up to max_bytes, so that short inputs reach the
  // widths of registers, blocks and windows.
  std::string repeated_rest(size_t max_bytes) {
    const bool repeats = byte() % 16 == 0;
    const size_t from = below(256), size = 1 + below(256), total = below(max_bytes);
    std::string text(rest());
    if (!repeats || text.empty())
      return text;
    const size_t start = from % text.size();
    const std::string part = text.substr(start, size);
    std::string more;
    while (text.size() + more.size() + part.size() <= total)
      more += part;
    return text.insert(start, more);
  }

private:
  const uint8_t *at_, *stop_;
};

// A buffer of exactly these bytes, so that the address sanitizer detects reads out of bounds.
class Exact {
public:
  explicit Exact(std::string_view text) : data_(new uint8_t[text.size()]), size_(text.size()) {
    if (size_ > 0)
      std::memcpy(data_.get(), text.data(), size_);
  }
  const uint8_t *data() const { return data_.get(); }
  const uint8_t *stop() const { return data_.get() + size_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {reinterpret_cast<const char *>(data_.get()), size_}; }

private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_;
};

// Special cases of patterns, normalizers and merges.
inline constexpr const char *hard_characters[] = {
    "\u00a0",     "\u3000",     "\u2028", "\u0085",     "\u017f",     "\u212a",     "\u0663", "\u00bd",
    "\u01c5",     "\u0301",     "\u0327", "\u00e9",     "\u042f",     "\u0436",     "\u4e2d", "\u6587",
    "\ud55c",     "\u1100",     "\u1161", "\u11a8",     "\u0e01",     "\u0e34",     "\u0928", "\u093f",
    "\U0001f600", "\U0001d7d9", "\u200d", "\U00020000", "\u02b0",     "\u2581",     "\u00df", "\u0130",
    "\ufb01",     "\u1e9b",     "\u0323", "\ufeff",     "\U0010ffff", "\U0001d15e", "\u0f71", "\u0344"};

// Returns valid UTF-8: invalid bytes become hard characters.
inline std::string valid_text(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    size_t length = 1;
    while (length <= 4 && at + length <= bytes.size() &&
           bpe::validate_utf8(bpe::bytes_of(bytes) + at, length) < length)
      ++length;
    if (length <= 4 && at + length <= bytes.size()) {
      text.append(bytes.substr(at, length));
      at += length;
    } else {
      text += hard_characters[static_cast<uint8_t>(bytes[at]) % std::size(hard_characters)];
      ++at;
    }
  }
  return text;
}

} // namespace fuzz
