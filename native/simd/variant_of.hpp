// The functions that a SIMD variant exports: every loop, compiled with the operations of that variant.
#pragma once

#include "cache/walk_keys.hpp"
#include "encode/walk_characters.hpp"
#include "merge/merge_one_by_one.hpp"
#include "pretokenize/scan_window.hpp"
#include "simd/simd_variants.hpp"
#include "text/character_set.hpp"

namespace bpe {
namespace {

// valid_prefix may be null.
template <class Simd, class BlockKeys = PlainBlockKeys, class Block = CharacterBlock>
constexpr SimdVariant variant_of(const char *name, decltype(SimdVariant::valid_prefix) valid_prefix,
                                 MergePretokens merge_pretokens = merge_one_by_one<Simd>) {
  return {name,
          scan_window<Simd>,
          walk_keys<Simd, BlockKeys>,
          walk_characters<Block>,
          valid_prefix,
          find_first_two<Simd>,
          find_in_set<Simd>,
          find_characters<Block>,
          emit_characters<Block>,
          merge_pretokens};
}

} // namespace
} // namespace bpe
