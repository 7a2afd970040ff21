#include "text/character_set.hpp"

#include "text/utf8.hpp"

#include <string>
#include <string_view>

namespace bpe {

CharacterSet::CharacterSet(const std::vector<uint32_t> &code_points) {
  std::string texts;
  texts.reserve(4 * code_points.size()); // string_views into it must stay valid
  std::vector<std::string_view> characters;
  for (const uint32_t c : code_points) {
    char bytes[4];
    const size_t length = write_utf8(c, reinterpret_cast<uint8_t *>(bytes));
    texts.append(bytes, length);
    characters.push_back(std::string_view(texts).substr(texts.size() - length));
    if (length == 3)
      of_three[c / 64] |= uint64_t{1} << c % 64;
  }
  begins = FirstTwoBytes(characters);
}

} // namespace bpe
