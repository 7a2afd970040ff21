// Extended grapheme clusters of Unicode Annex 29: where the next one begins.
//
// Flags are taken for two clusters where they are one: these have eight bytes, and Precompiled looks only at
// clusters of less than six.
#pragma once

#include "normalize/unicode_tables.hpp"

namespace bpe {

// Follows a text from the start of a cluster on, class by class.
class ClusterRules {
public:
  explicit ClusterRules(unicode::ClusterClass first) { begin(first); }

  // Whether the next character belongs to the cluster; if not, it begins the next one.
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
  bool pictographic_;           // a pictographic and extends of it
  bool after_pictographic_zwj_; // and then a zero width joiner
  bool conjunct_;               // a consonant and what may stand in a conjunct
  bool linked_;                 // with a linker in it
};

} // namespace bpe
