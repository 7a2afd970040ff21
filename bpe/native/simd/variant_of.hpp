// What the source of a SIMD variant hands out: every loop, built with that variant's operations.
#pragma once

#include "cache/walk_keys.hpp"
#include "encode/character_runs.hpp"
#include "encode/walk_characters.hpp"
#include "merge/merge_interleaved.hpp"
#include "merge/merge_rank_at_a_time.hpp"
#include "pretokenize/pretokenize_blocks.hpp"

namespace bpe {
namespace {

// valid_prefix may be null.
template <class Simd, class BlockKeys = PlainBlockKeys, class Block = CharacterBlock>
constexpr SimdVariant variant_of(const char *name, decltype(SimdVariant::valid_prefix) valid_prefix,
                                 MergeShortPretokens merge_short_pretokens = merge_interleaved,
                                 MakeKeys make_keys = bpe::make_keys,
                                 MergeLongPretokens merge_long_pretokens = merge_each_rank_at_a_time<Simd>) {
  return {name,
          {walk_blocks<Simd, Pattern::gpt2>, walk_blocks<Simd, Pattern::cl100k>,
           walk_blocks<Simd, Pattern::o200k>, walk_blocks<Simd, Pattern::llama3>,
           walk_blocks<Simd, Pattern::qwen2>},
          {walk_keys<Simd, Pattern::gpt2, BlockKeys>, walk_keys<Simd, Pattern::cl100k, BlockKeys>,
           walk_keys<Simd, Pattern::o200k, BlockKeys>, walk_keys<Simd, Pattern::llama3, BlockKeys>,
           walk_keys<Simd, Pattern::qwen2, BlockKeys>},
          {character_walks<Block, Simd, Pattern::gpt2>(), character_walks<Block, Simd, Pattern::cl100k>(),
           character_walks<Block, Simd, Pattern::o200k>(), character_walks<Block, Simd, Pattern::llama3>(),
           character_walks<Block, Simd, Pattern::qwen2>()},
          valid_prefix,
          make_keys,
          find_characters<Block>,
          emit_characters<Block>,
          merge_short_pretokens,
          merge_rank_at_a_time<Simd>,
          merge_long_pretokens};
}

} // namespace
} // namespace bpe
