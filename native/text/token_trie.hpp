// Find the longest of many byte strings at an offset of a text.
//
// `longest_at` walks the trie forward from one offset, at most as far as the longest string.
// `longest_at_each` finds the longest string at every offset of a block in time independent of the string
// lengths: it runs the Aho-Corasick automaton of the reversed strings from the end of the block to its start.
// At each offset, the longest reversed string just read is the longest string that starts there.
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
  // The strings must be distinct and not empty. reversed: true for longest_at_each, false for longest_at.
  TokenTrie(const std::vector<std::string_view> &tokens, bool reversed);

  // Return the index of the longest string at text[place, size), or no_token. place < size.
  uint32_t longest_at(const uint8_t *text, size_t size, size_t place) const;
  // Set longest[i] to the same for offset start + i < stop.
  void longest_at_each(const uint8_t *text, size_t size, size_t start, size_t stop,
                       std::vector<uint32_t> &longest) const;

private:
  static constexpr uint32_t none = 0; // the root is no node's child
  uint32_t child(uint32_t node, uint8_t byte) const;
  void link_suffixes();

  // Indexed by node; 0 is the root. The children of a node are adjacent, in ascending order of their bytes.
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> first_child_; // element node + 1 is the end of the children
  std::vector<uint32_t> tokens_;      // string that ends at the node; if reversed, or at one of its suffixes
  std::vector<uint32_t> suffixes_;    // if reversed, the node of the longest proper suffix
  uint32_t root_children_[256] = {};
  size_t longest_ = 0;
};

} // namespace bpe
