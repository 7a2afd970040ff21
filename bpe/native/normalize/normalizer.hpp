// The sequence of normalizers of a tokenizer.json.
//
// Immutable and thread-safe. Each section (text between two special tokens) is normalized separately, either
// whole or in parts that end at borders. Results equal Hugging Face tokenizers.
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
  // name:
  // - nfc, nfd, nfkc, nfkd, lowercase, strip_left, strip_right, strip_both, strip_accents, nmt, byte_level
  // - bert_clean, bert_ideographs, bert_clean_ideographs, bert_accents, bert_accents_lowercase
  // - prepend: puts `first` before a section
  // - prefix, input_prefix: puts `first` before a section, or an input, that does not start with it
  // - replace: replaces the text `first` with `second`
  // - replace_matches: replaces the pieces that `automaton` drops with `second`
  // - charsmap, precompiled: applies the charsmap `first`
  struct Kind {
    std::string name, first, second;
    std::shared_ptr<const Automaton> automaton = nullptr;
  };
  // Throws std::invalid_argument for an unknown name or an invalid charsmap.
  explicit Normalizer(const std::vector<Kind> &kinds);
  Normalizer(const Normalizer &) = delete;

  // Output buffers, for one thread at a time.
  struct Scratch {
    ByteBuffer buffers[2];
    // The end of the readable memory after a text that apply() returned.
    const uint8_t *readable(std::string_view made) const {
      return buffers[reinterpret_cast<const uint8_t *>(made.data()) == buffers[1].data()].readable();
    }
  };
  // Returns the normalized text: a view of `text` if nothing changes, else of the scratch.
  // text: valid UTF-8. start: whether it starts an input or a section, or continues after a border.
  std::string_view apply(std::string_view text, Scratch &scratch, TextStart start = TextStart::section) const;
  // Returns the start of the next part. If nothing was written so far, a prefix is still due.
  TextStart start_behind(TextStart start, std::string_view made) const {
    return made.empty() && prefixes_ ? start : TextStart::inside;
  }

  // Whether the parts before and after the character at `place` can be normalized separately in any context.
  bool is_border(std::string_view text, size_t place) const;
  // Returns the last border at or before a place, or 0 if there is none.
  size_t last_border(std::string_view text, size_t place) const;
  // Whether the place is a border and normalizing keeps the characters before and after it.
  bool is_fixed_border(std::string_view text, size_t place) const;
  // Returns the start of the part of the text that becomes the byte at `place` of the normalized text.
  size_t place_before(std::string_view text, size_t place) const;
  // Whether a text can be normalized in parts that only depend on their TextStart.
  bool same_for_parts() const { return has_borders_ && !prepends_; }
  bool has_borders() const { return has_borders_; }
  bool prepends() const { return prepends_; }
  // Whether a step adds a prefix, and whether all steps do.
  bool prefixes() const { return prefixes_; }
  bool only_prefixes() const { return only_prefixes_; }
  // Maximum number of output bytes per input byte, or SIZE_MAX if that overflows.
  size_t max_growth() const { return max_growth_; }

private:
  bool stays_behind_border(std::string_view text, size_t place) const;

  struct Placed {
    const Step *step;
    TextStart least; // the step applies from this start on
  };

  std::vector<std::unique_ptr<const Step>> owned_;
  std::vector<Placed> steps_;
  const Precompiled *precompiled_ = nullptr; // if it is a step
  bool has_borders_ = true;
  bool prepends_ = false; // a step is prepend
  bool prefixes_ = false, only_prefixes_ = true;
  size_t max_growth_ = 1;
  std::array<bool, 128> ascii_is_border_{}, ascii_stays_{};
};

} // namespace bpe
