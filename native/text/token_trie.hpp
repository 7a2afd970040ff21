// The longest of many byte strings at a place of a text.
//
// Forwards, `longest_at` walks the trie from one place: at most the longest string's bytes. `longest_at_each`
// gives the answer for every place of a block in a time that depends on no string's length: it runs Aho and
// Corasick's automaton of the reversed strings over the block from its end to its start, and where that
// stands, the longest reversed string that it has just read is the longest string that begins there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bpe {

class TokenTrie {
public:
  static constexpr uint32_t no_token = UINT32_MAX;

  TokenTrie() = default;
  // The strings are different and not empty. reversed: for longest_at_each, otherwise for longest_at.
  TokenTrie(const std::vector<std::string_view> &tokens, bool reversed);

  // The number of the longest string at text[place, size), or no_token. place < size.
  uint32_t longest_at(const uint8_t *text, size_t size, size_t place) const;
  // longest[i]: the same for place start + i < stop.
  void longest_at_each(const uint8_t *text, size_t size, size_t start, size_t stop,
                       std::vector<uint32_t> &longest) const;

private:
  static constexpr uint32_t none = 0; // the root is nobody's child
  uint32_t child(uint32_t node, uint8_t byte) const;
  void link_suffixes();

  // By node, 0 the root. The children of a node are neighbours, by ascending byte.
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> first_child_; // and, at node + 1, the end of the children
  std::vector<uint32_t> tokens_;      // which string ends here; reversed: or with a suffix of what was read
  std::vector<uint32_t> suffixes_;    // reversed: the node of the longest proper suffix
  uint32_t root_children_[256] = {};
  size_t longest_ = 0;
};

} // namespace bpe
