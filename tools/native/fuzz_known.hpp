// Vocabularies that a number determines. They are built once for many inputs, and every input is
// deterministic.
#pragma once

#include "fuzz_rules.hpp"

#include <map>
#include <memory>
#include <random>

namespace fuzz {

struct KnownVocabulary {
  explicit KnownVocabulary(uint32_t number)
      : rules(rules_of(number)), plain(rules), vocabulary(rules.vocabulary()) {}
  KnownVocabulary(const KnownVocabulary &) = delete;

  static Rules rules_of(uint32_t number) {
    std::mt19937 random(number);
    std::vector<uint8_t> bytes(400);
    for (uint8_t &byte : bytes)
      byte = static_cast<uint8_t>(random());
    Input input(bytes.data(), bytes.size());
    return byte_rules(input, 180);
  }

  const Rules rules;
  const PlainMerge plain;
  const bpe::Vocabulary vocabulary;
};

inline const KnownVocabulary &vocabulary_of(uint32_t number) {
  constexpr size_t most = 100;
  static std::map<uint32_t, std::unique_ptr<KnownVocabulary>> known;
  if (known.size() > most)
    known.clear();
  std::unique_ptr<KnownVocabulary> &place = known[number];
  if (!place)
    place = std::make_unique<KnownVocabulary>(number);
  return *place;
}

} // namespace fuzz
