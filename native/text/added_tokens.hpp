// The added tokens of a tokenizer, found in two passes. The first pass finds tokens that are not normalized
// in the original text. The second finds the other tokens in the normalized text between those. Without a
// normalizer both passes use the same text.
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
  // contents: the tokens as decoded. raw, normalized: the tokens to find in each pass. Throws like
  // SpecialTokens.
  AddedTokens(std::vector<SpecialToken> contents, std::vector<SpecialToken> raw,
              std::vector<SpecialToken> normalized)
      : contents_(std::move(contents)), raw_(std::move(raw)), normalized_(std::move(normalized)) {}

  const std::vector<SpecialToken> &contents() const { return contents_; }
  const SpecialTokens &raw() const { return raw_; }
  const SpecialTokens &normalized() const { return normalized_; }

  // Return whether any token contains `text`. A text without `text` cannot contain such a token.
  bool any_holds(std::string_view text) const { return holds(raw_, text) || holds(normalized_, text); }
  AddedTokens without(std::string_view text) const {
    return {{}, not_holding(raw_, text), not_holding(normalized_, text)};
  }
  // Return only the tokens with these values, in both passes.
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
  // Return whether a token may end at `place`, checked as if the search found it there.
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
