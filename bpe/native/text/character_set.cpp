#include "text/character_set.hpp"

#include "text/utf8.hpp"

#include <set>

namespace bpe {

CharacterSet::CharacterSet(const std::vector<uint32_t> &code_points) {
  std::set<unsigned> pairs;
  for (const uint32_t c : code_points) {
    uint8_t bytes[4];
    const size_t length = write_utf8(c, bytes);
    for (unsigned second = 0; length == 1 && second < 256; ++second)
      pairs.insert(bytes[0] << 8u | second);
    if (length > 1)
      pairs.insert(bytes[0] << 8u | bytes[1]);
    if (length == 3)
      of_three[c / 64] |= uint64_t{1} << c % 64;
  }
  begins = FirstTwoBytes(pairs);
}

} // namespace bpe
