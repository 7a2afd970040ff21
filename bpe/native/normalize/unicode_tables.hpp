// What the normalizers of Hugging Face tokenizers do to single characters, as data: read off the library by
// tools/generate_normalization_tables.py. Its Unicode versions differ from normalizer to normalizer.
//
// Sets are pairs first, last. Mappings are code point | length << 21, then as many code points.
// Runs are first code point << 8 | class, up to the next run, from 0 on.
#pragma once

#include <cstdint>
#include <span>

namespace bpe::unicode {

extern const std::span<const uint32_t> combining_class_runs;
extern const std::span<const uint32_t> cluster_class_runs; // enum ClusterClass
extern const std::span<const uint32_t>
    canonical_decompositions; // complete, in order; Hangul's are arithmetic
extern const std::span<const uint32_t> other_compatibility_decompositions; // where NFKD differs from NFD
extern const std::span<const uint32_t> composing_pairs;                    // first, second, what they become
extern const std::span<const uint32_t> lower_case;

extern const std::span<const uint32_t> combining_marks;  // StripAccents removes them
extern const std::span<const uint32_t> nonspacing_marks; // BertNormalizer's strip_accents removes them
extern const std::span<const uint32_t> white_space;      // Strip removes it
extern const std::span<const uint32_t> bert_removed, bert_spaces, bert_ideographs;
extern const std::span<const uint32_t> nmt_removed, nmt_spaces;

enum ClusterClass : uint8_t {
  other,
  cr,
  lf,
  control,
  extend,
  linker,       // an extend of conjuncts
  other_extend, // one that ends a conjunct
  zwj,
  spacing_mark,
  prepend,
  l,
  v,
  t,
  lv,
  lvt,
  pictographic,
  consonant
};

} // namespace bpe::unicode
