#include "character_runs_avx512.hpp"
#include "lanes_avx512.hpp"
#include "make_keys_avx512.hpp"
#include "merge_long_by_lanes.hpp"
#include "merge_short_by_lanes.hpp"
#include "pretokenize_blocks.hpp"
#include "simd_avx512.hpp"

namespace bpe {

constinit const SimdVariant avx512_variant = variant_of<Avx512Simd>(
    "avx512", valid_prefix<Avx512Simd>, ShortSideBySide<Avx512Lanes>::merge, make_keys_avx512,
    LongSideBySide<Avx512Lanes, Avx512Simd>::merge, find_characters_avx512, emit_characters_avx512);

} // namespace bpe
