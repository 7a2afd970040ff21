// The normal forms NFC, NFD, NFKC and NFKD of Unicode Annex 15, with the Unicode version of Hugging Face
// tokenizers.
//
//     for each run, from a clean character up to the next:
//         no doubtful character and marks in order: copy the run
//         each character composes with the result so far: write the result
//         otherwise: decompose; sort each span of marks by class, stably; compose if asked to; write
//
// 1. A character is clean (class 0) if it does not change and never composes with text before it, so the text
//    can be cut before it. Classes 1 to 254 are marks, which stay unless a mark before them has a higher
//    class. Other characters are doubtful (255): they compose or decompose.
// 2. A vector search skips clean text.
// 3. Cost: linear, and n log n for n marks after one character.
#pragma once

#include "normalize/page_table.hpp"
#include "normalize/step.hpp"
#include "text/character_set.hpp"

#include <vector>

namespace bpe {

class NormalForm final : public Step {
public:
  // Returns the shared instance.
  static const NormalForm &get(bool composed, bool compatible);

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t code_point) const override { return classes_[code_point] == 0; }
  size_t max_growth() const override { return max_growth_; }

private:
  struct Stretch {
    const uint8_t *start, *stop;
  };
  // The code points of a run, as class << 24 | code point.
  class Parts;

  NormalForm(bool composed, bool compatible);
  Stretch next_doubtful(const uint8_t *p, const uint8_t *stop) const;
  bool compose_directly(Stretch stretch, ByteBuffer &out) const;
  void decompose(Stretch stretch, Parts &parts) const;
  void append_stretch(Stretch stretch, Parts &parts, ByteBuffer &out) const;

  const bool composed_;
  PageTable<uint8_t> classes_;
  CharacterSet unclean_; // all other than clean characters
  // Combining class << 24 | offset in pool_ of the number of parts and the parts; 0: it does not decompose.
  PageTable<uint32_t> decompositions_;
  std::vector<uint32_t> pool_{0};
  size_t max_growth_ = 1;
};

} // namespace bpe
