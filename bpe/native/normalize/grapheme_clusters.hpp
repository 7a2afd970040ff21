// Boundaries of extended grapheme clusters (Unicode Annex 29).
//
// A flag counts as two clusters. It has eight bytes, and Precompiled only reads clusters below six bytes.
#pragma once

#include "normalize/unicode_tables.hpp"

namespace bpe {

// Reads the classes of a text from the start of a cluster.
class ClusterRules {
public:
  explicit ClusterRules(unicode::ClusterClass first) { begin(first); }

  // Whether the next character belongs to the cluster. Otherwise it starts the next one.
  bool goes_on(unicode::ClusterClass next) {
    using namespace unicode;
    if (!joins(next)) {
      begin(next);
      return false;
    }
    const bool extends = next == extend || next == linker || next == other_extend;
    after_pictographic_zwj_ = pictographic_ && next == zwj;
    pictographic_ = next == pictographic || (pictographic_ && extends);
    if (next == linker)
      linked_ = conjunct_;
    else if (next != extend && next != zwj)
      conjunct_ = linked_ = false;
    if (next == consonant)
      conjunct_ = true, linked_ = false;
    last_ = next;
    return true;
  }

private:
  void begin(unicode::ClusterClass first) {
    last_ = first;
    pictographic_ = first == unicode::pictographic;
    conjunct_ = first == unicode::consonant;
    after_pictographic_zwj_ = linked_ = false;
  }
  bool joins(unicode::ClusterClass next) const {
    using namespace unicode;
    if (last_ == cr)
      return next == lf;
    if (last_ == lf || last_ == control || next == cr || next == lf || next == control)
      return false;
    if (next == extend || next == linker || next == other_extend || next == zwj || next == spacing_mark ||
        last_ == prepend)
      return true;
    if (last_ == l)
      return next == l || next == v || next == lv || next == lvt;
    if (last_ == lv || last_ == v)
      return next == v || next == t;
    if (last_ == lvt || last_ == t)
      return next == t;
    return (next == consonant && linked_) || (next == pictographic && after_pictographic_zwj_);
  }

  unicode::ClusterClass last_;
  bool pictographic_;           // a pictographic and its extends
  bool after_pictographic_zwj_; // followed by a zero width joiner
  bool conjunct_;               // a consonant, then only characters of a conjunct
  bool linked_;                 // the conjunct has a linker
};

} // namespace bpe
