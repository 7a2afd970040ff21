// The normalizers of a tokenizer.json, one after the other: text in, normalized text out.
//
// Immutable, so any number of threads may use one. A text between two special tokens is normalized by itself,
// whole or in parts that end at borders. Equal to Hugging Face tokenizers for every text; its tables are read
// off it.
#pragma once

#include "normalize/precompiled.hpp"
#include "normalize/step.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bpe {

class Normalizer {
public:
  // kind: nfc, nfd, nfkc, nfkd, lowercase, strip_left, strip_right, strip_both, strip_accents, nmt,
  // byte_level, bert_clean, bert_ideographs, bert_accents; prepend with the text; replace with a text and
  // another; precompiled with the charsmap.
  struct Kind {
    std::string name, first, second;
  };
  // Throws std::invalid_argument for a kind that is not known and for texts that can't be.
  explicit Normalizer(const std::vector<Kind> &kinds);
  Normalizer(const Normalizer &) = delete;

  // What the steps write; for one thread at a time.
  struct Scratch {
    ByteBuffer buffers[2];
  };
  // The text, valid UTF-8, after all steps: a view of it if it stays as it is, else of the scratch.
  // at_start: it is the beginning of the text between special tokens, not a part behind a border.
  std::string_view apply(std::string_view text, Scratch &scratch, bool at_start = true) const;

  // Whether the text may be normalized apart before and behind the place, where a character begins, whatever
  // stands around.
  bool is_border(std::string_view text, size_t place) const;
  // The last border at or before a place that is not the text's start; 0: there is none.
  size_t last_border(std::string_view text, size_t place) const;
  // Whether the place is a border at which the characters before and behind stay as they are.
  bool is_fixed_border(std::string_view text, size_t place) const;
  // Where the byte at `place` of the normalized text comes from: the start of what was normalized with it.
  size_t place_before(std::string_view text, size_t place) const;
  // Whether there are borders, and parts behind one are normalized by the same rule as whole texts.
  bool same_for_parts() const { return has_borders_ && !prepends_; }
  // How many bytes a byte of a text becomes at most.
  size_t max_growth() const { return max_growth_; }

private:
  bool stays_behind_border(std::string_view text, size_t place) const;

  std::vector<std::unique_ptr<const Step>> owned_;
  std::vector<const Step *> steps_;
  const Precompiled *precompiled_ = nullptr; // if it is a step
  bool has_borders_ = true;
  bool prepends_ = false; // in front of all else
  size_t max_growth_ = 1;
  std::array<bool, 128> ascii_is_border_{}, ascii_stays_{};
};

} // namespace bpe
