#include "text/token_trie.hpp"

#include <algorithm>
#include <numeric>

namespace bpe {

TokenTrie::TokenTrie(const std::vector<std::string_view> &tokens, bool reversed) {
  const auto byte_of = [&](uint32_t token, size_t depth) {
    const std::string_view text = tokens[token];
    return static_cast<uint8_t>(text[reversed ? text.size() - 1 - depth : depth]);
  };
  std::vector<uint32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const size_t shared = std::min(tokens[a].size(), tokens[b].size());
    for (size_t depth = 0; depth < shared; ++depth)
      if (byte_of(a, depth) != byte_of(b, depth))
        return byte_of(a, depth) < byte_of(b, depth);
    return tokens[a].size() < tokens[b].size();
  });
  for (const std::string_view token : tokens)
    longest_ = std::max(longest_, token.size());

  // Nodes ordered by depth, each with its range in `order`.
  struct Run {
    uint32_t first, last;
    size_t depth;
  };
  std::vector<Run> runs{{0, static_cast<uint32_t>(order.size()), 0}};
  bytes_.push_back(0);
  for (uint32_t node = 0; node < runs.size(); ++node) {
    auto [first, last, depth] = runs[node];
    first_child_.push_back(static_cast<uint32_t>(runs.size()));
    const bool ends = first < last && tokens[order[first]].size() == depth;
    tokens_.push_back(ends ? order[first++] : no_token);
    while (first < last) {
      const uint8_t byte = byte_of(order[first], depth);
      uint32_t stop = first + 1;
      while (stop < last && byte_of(order[stop], depth) == byte)
        ++stop;
      if (node == 0)
        root_children_[byte] = static_cast<uint32_t>(runs.size());
      bytes_.push_back(byte);
      runs.push_back({first, stop, depth + 1});
      first = stop;
    }
  }
  first_child_.push_back(static_cast<uint32_t>(runs.size()));
  if (reversed)
    link_suffixes();
}

uint32_t TokenTrie::child(uint32_t node, uint8_t byte) const {
  if (node == 0)
    return root_children_[byte];
  const auto begin = bytes_.begin() + first_child_[node], end = bytes_.begin() + first_child_[node + 1];
  const auto found = std::lower_bound(begin, end, byte);
  return found != end && *found == byte ? static_cast<uint32_t>(found - bytes_.begin()) : none;
}

void TokenTrie::link_suffixes() {
  suffixes_.assign(tokens_.size(), 0);
  for (uint32_t node = 1; node < tokens_.size(); ++node) {
    if (tokens_[node] == no_token)
      tokens_[node] = tokens_[suffixes_[node]];
    for (uint32_t next = first_child_[node]; next < first_child_[node + 1]; ++next) {
      uint32_t suffix = suffixes_[node];
      while (suffix != 0 && child(suffix, bytes_[next]) == none)
        suffix = suffixes_[suffix];
      suffixes_[next] = child(suffix, bytes_[next]);
    }
  }
}

uint32_t TokenTrie::longest_at(const uint8_t *text, size_t size, size_t place) const {
  uint32_t longest = no_token, node = root_children_[text[place]];
  while (node != none) {
    if (tokens_[node] != no_token)
      longest = tokens_[node];
    node = ++place < size ? child(node, text[place]) : none;
  }
  return longest;
}

void TokenTrie::longest_at_each(const uint8_t *text, size_t size, size_t start, size_t stop,
                                std::vector<uint32_t> &longest) const {
  longest.resize(stop - start);
  uint32_t node = 0;
  for (size_t place = size - stop < longest_ ? size : stop + longest_; place-- > start;) {
    uint32_t next;
    while ((next = child(node, text[place])) == none && node != 0)
      node = suffixes_[node];
    node = next;
    if (place < stop)
      longest[place - start] = tokens_[node];
  }
}

} // namespace bpe
