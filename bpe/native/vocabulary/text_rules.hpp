// How a vocabulary is read whose entries are text (bpe/vocabulary.py's TextRules says what the fields mean).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bpe {

struct TextRules {
  // byte_level: entries are bytes. A byte without an entry is left out before merging, or is unknown.
  bool byte_level = false, byte_fallback = false, fuse_unk = false;
  // The text to encode has a space where entries have U+2581, and no U+2581 of its own.
  bool has_spaces = false;
  std::optional<uint32_t> unk_id;
  std::string unk_token, prefix, suffix;
};

inline constexpr std::string_view lower_block = "\xE2\x96\x81"; // U+2581

// "<0x0A>" of 10.
std::string byte_entry(uint8_t byte);

// The text with spaces for U+2581 and the other way round.
std::string exchange_spaces(std::string_view text);

} // namespace bpe
