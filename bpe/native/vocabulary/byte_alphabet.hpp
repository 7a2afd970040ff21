// GPT-2's byte alphabet, in which tokenizer.json spells entries. 188 printable Latin-1 characters represent
// their own byte; U+0100 and the following characters represent the other 68 bytes in order. Equals
// bpe/formats/byte_alphabet.py.
#pragma once

#include <array>
#include <cstdint>

namespace bpe {

struct ByteAlphabet {
  static constexpr uint32_t end = 0x144; // no character from here on is in the alphabet
  std::array<uint16_t, 256> character_of{};
  std::array<int16_t, end> byte_of{}; // -1: not in the alphabet

  constexpr ByteAlphabet() {
    byte_of.fill(-1);
    uint16_t next_other = 0x100;
    for (uint16_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte < 0x7F) || (byte >= 0xA1 && byte != 0xAD);
      character_of[byte] = printable ? byte : next_other++;
      byte_of[character_of[byte]] = static_cast<int16_t>(byte);
    }
  }
};

inline constexpr ByteAlphabet byte_alphabet;
static_assert(byte_alphabet.character_of[' '] == 0x120 && byte_alphabet.byte_of[0x143] == 0xAD);

} // namespace bpe
