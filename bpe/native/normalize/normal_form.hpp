// The normal forms NFC, NFD, NFKC and NFKD of Unicode Annex 15, by the Unicode version that Hugging Face
// tokenizers has.
//
// A character is clean (class 0) if it stays as it is and composes with nothing before it: the text may be
// normalized apart before and behind the place where it begins. Classes 1 to 254 are marks that stay where
// they stand if the marks before them have no higher combining class. All else is doubtful (255): it may
// compose, or it is taken apart. A stretch runs from a clean character to the next; one that holds a doubtful
// character or marks out of order is normalized, all else is copied. Linear in the text but for the order of
// n marks behind one character, n log n.
#pragma once

#include "normalize/page_table.hpp"
#include "normalize/step.hpp"
#include "text/character_set.hpp"

#include <vector>

namespace bpe {

class NormalForm final : public Step {
public:
  // One of each exists, made on first use.
  static const NormalForm &get(bool composed, bool compatible);

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t code_point) const override { return classes_[code_point] == 0; }
  size_t max_growth() const override { return max_growth_; }

private:
  struct Stretch {
    const uint8_t *start, *stop;
  };
  // The code points of a stretch in lanes of (class << 24 | code point).
  class Parts;

  NormalForm(bool composed, bool compatible);
  Stretch next_doubtful(const uint8_t *p, const uint8_t *stop) const;
  bool compose_directly(Stretch stretch, ByteBuffer &out) const;
  void decompose(Stretch stretch, Parts &parts) const;
  void append_stretch(Stretch stretch, Parts &parts, ByteBuffer &out) const;

  const bool composed_;
  PageTable<uint8_t> classes_;
  CharacterSet unclean_; // all that are not clean
  // Combining class << 24 | place in pool_ of how many parts it has and these; place 0: it is its own part.
  PageTable<uint32_t> decompositions_;
  std::vector<uint32_t> pool_{0};
  size_t max_growth_ = 1;
};

} // namespace bpe
