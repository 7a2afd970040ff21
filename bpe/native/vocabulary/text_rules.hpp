// Rules for vocabularies with text entries. TextRules in bpe/vocabulary.py documents the fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bpe {

struct TextRules {
  // byte_level: entries are bytes. A byte without an entry is dropped before merging, or is unknown.
  bool byte_level = false, byte_fallback = false, fuse_unk = false;
  // The text to encode has a space where entries have U+2581, and contains no U+2581.
  bool has_spaces = false;
  std::optional<uint32_t> unk_id;
  std::string unk_token, prefix, suffix;
};

inline constexpr std::string_view lower_block = "\xE2\x96\x81"; // U+2581

// Return "<0x0A>" for 10.
std::string byte_entry(uint8_t byte);

// Exchange spaces and U+2581 in the text.
std::string exchange_spaces(std::string_view text);

} // namespace bpe
