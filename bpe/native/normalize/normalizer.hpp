// The normalizers of a tokenizer.json, one after the other: text in, normalized text out.
//
// Immutable, so any number of threads may use one. A text between two special tokens is normalized by itself,
// whole or in parts that end at borders. Equal to Hugging Face tokenizers for every text; its tables are read
// off it.
#pragma once

#include "normalize/precompiled.hpp"
#include "normalize/step.hpp"
#include "pretokenize/automaton.hpp"

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
  // byte_level, bert_clean, bert_ideographs, bert_accents; prepend with the text; prefix and input_prefix
  // with what texts, or inputs, get that do not begin with it; replace with a text and another; precompiled
  // with the charsmap.
  // replace_matches with an automaton, whose dropped pieces become the second text.
  struct Kind {
    std::string name, first, second;
    std::shared_ptr<const Automaton> automaton = nullptr;
  };
  // Throws std::invalid_argument for a kind that is not known and for texts that can't be.
  explicit Normalizer(const std::vector<Kind> &kinds);
  Normalizer(const Normalizer &) = delete;

  // What the steps write; for one thread at a time.
  struct Scratch {
    ByteBuffer buffers[2];
    // Up to where bytes may be read of a text that apply() made.
    const uint8_t *readable(std::string_view made) const {
      return buffers[reinterpret_cast<const uint8_t *>(made.data()) == buffers[1].data()].readable();
    }
  };
  // The text, valid UTF-8, after all steps: a view of it if it stays as it is, else of the scratch.
  // start: whether it is the beginning of a text between special tokens, or a part behind a border.
  std::string_view apply(std::string_view text, Scratch &scratch, TextStart start = TextStart::section) const;
  // What the start of the next part is. Where nothing was made so far, prefixes are still to come.
  TextStart start_behind(TextStart start, std::string_view made) const {
    return made.empty() && prefixes_ ? start : TextStart::inside;
  }

  // Whether the text may be normalized apart before and behind the place, where a character begins, whatever
  // stands around.
  bool is_border(std::string_view text, size_t place) const;
  // The last border at or before a place that is not the text's start; 0: there is none.
  size_t last_border(std::string_view text, size_t place) const;
  // Whether the place is a border at which the characters before and behind stay as they are.
  bool is_fixed_border(std::string_view text, size_t place) const;
  // Where the byte at `place` of the normalized text comes from: the start of what was normalized with it.
  size_t place_before(std::string_view text, size_t place) const;
  // Whether there are borders, and a part behind one needs no more than to know that it is one.
  bool same_for_parts() const { return has_borders_ && !prepends_; }
  bool has_borders() const { return has_borders_; }
  bool prepends() const { return prepends_; }
  // Whether texts that begin without one get a prefix, and whether nothing else is done to them.
  bool prefixes() const { return prefixes_; }
  bool only_prefixes() const { return only_prefixes_; }
  // The most bytes that normalizing makes per byte of text; SIZE_MAX where that overflows.
  size_t max_growth() const { return max_growth_; }

private:
  bool stays_behind_border(std::string_view text, size_t place) const;

  struct Placed {
    const Step *step;
    TextStart least; // the step is for texts that begin so, or as what comes behind in the enumeration
  };

  std::vector<std::unique_ptr<const Step>> owned_;
  std::vector<Placed> steps_;
  const Precompiled *precompiled_ = nullptr; // if it is a step
  bool has_borders_ = true;
  bool prepends_ = false; // in front of all else
  bool prefixes_ = false, only_prefixes_ = true;
  size_t max_growth_ = 1;
  std::array<bool, 128> ascii_is_border_{}, ascii_stays_{};
};

} // namespace bpe
