#include "text/first_two_bytes.hpp"

#include <iterator>
#include <set>

namespace bpe {

FirstTwoBytes::FirstTwoBytes(const std::vector<std::string_view> &tokens) {
  std::set<unsigned> pairs;
  for (const std::string_view token : tokens) {
    const unsigned first = static_cast<uint8_t>(token[0]) << 8u;
    if (token.size() > 1)
      pairs.insert(first | static_cast<uint8_t>(token[1]));
    for (unsigned second = 0; token.size() == 1 && second < 256; ++second)
      pairs.insert(first | second);
  }
  // Pairs that differ only in the last four bits form a group without false positives. If there are too many
  // such groups, pairs are grouped by first byte. With more than eight groups, neighbours share a bit.
  constexpr size_t most_groups = 8;
  const auto groups_by = [&](unsigned bits) {
    std::set<unsigned> groups;
    for (const unsigned pair : pairs)
      groups.insert(pair >> bits);
    return groups;
  };
  unsigned bits = 4;
  std::set<unsigned> groups = groups_by(bits);
  if (groups.size() > most_groups)
    groups = groups_by(bits = 8);
  const size_t count = std::max(groups.size(), most_groups);
  for (const unsigned pair : pairs) {
    const auto group = std::distance(groups.begin(), groups.find(pair >> bits));
    const auto bit = static_cast<uint8_t>(1u << static_cast<size_t>(group) * most_groups / count);
    first_high[pair >> 12] |= bit;
    first_low[pair >> 8 & 15] |= bit;
    second_high[pair >> 4 & 15] |= bit;
    second_low[pair & 15] |= bit;
    allowed[pair / 64] |= uint64_t{1} << pair % 64;
  }
}

} // namespace bpe
