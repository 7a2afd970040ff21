// A tokenizer's added tokens in the two passes in which they are found: those that are not normalized in the
// text as it is, the others in the normalized text between those. Without a normalizer both passes see the
// same text.
#pragma once

#include "text/special_tokens.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe {

class AddedTokens {
public:
  AddedTokens() = default;
  // contents: what ids decode to. raw, normalized: what is searched for in each pass. Throws as SpecialTokens
  // does.
  AddedTokens(std::vector<SpecialToken> contents, std::vector<SpecialToken> raw,
              std::vector<SpecialToken> normalized)
      : contents_(std::move(contents)), raw_(std::move(raw)), normalized_(std::move(normalized)) {}

  const std::vector<SpecialToken> &contents() const { return contents_; }
  const SpecialTokens &raw() const { return raw_; }
  const SpecialTokens &normalized() const { return normalized_; }

  // Whether one holds this text; those that do can't lie in a text without it.
  bool any_holds(std::string_view text) const { return holds(raw_, text) || holds(normalized_, text); }
  AddedTokens without(std::string_view text) const {
    return {{}, not_holding(raw_, text), not_holding(normalized_, text)};
  }
  // Those with these values, in both passes.
  AddedTokens only(const std::vector<uint32_t> &values) const {
    const auto chosen = [&](const SpecialTokens &tokens) {
      std::vector<SpecialToken> left;
      for (const SpecialToken &token : tokens.tokens())
        if (std::ranges::find(values, token.value) != values.end())
          left.push_back(token);
      return left;
    };
    return {{}, chosen(raw_), chosen(normalized_)};
  }
  bool stands_across(const uint8_t *text, size_t size, size_t place) const {
    return raw_.stands_across(text, size, place) || normalized_.stands_across(text, size, place);
  }
  // Whether one stands before the place, as if it were found there.
  bool may_end_at(std::string_view text, size_t place) const {
    const auto ends = [&](const SpecialToken &token) { return text.substr(0, place).ends_with(token.text); };
    return std::ranges::any_of(raw_.tokens(), ends) || std::ranges::any_of(normalized_.tokens(), ends);
  }

  size_t reach() const { return std::max(raw_.reach(), normalized_.reach()); }

private:
  static bool holds(const SpecialTokens &tokens, std::string_view text) {
    for (const SpecialToken &token : tokens.tokens())
      if (token.text.find(text) != std::string::npos)
        return true;
    return false;
  }
  static std::vector<SpecialToken> not_holding(const SpecialTokens &tokens, std::string_view text) {
    std::vector<SpecialToken> left;
    for (const SpecialToken &token : tokens.tokens())
      if (token.text.find(text) == std::string::npos)
        left.push_back(token);
    return left;
  }

  std::vector<SpecialToken> contents_;
  SpecialTokens raw_, normalized_;
};

} // namespace bpe
