#include "cache/block_keys_avx512.hpp"
#include "encode/character_block_avx512.hpp"
#include "merge/merge_by_lanes.hpp"
#include "simd/lanes_avx512.hpp"
#include "simd/simd_avx512.hpp"
#include "simd/variant_of.hpp"

namespace bpe {

constinit const SimdVariant avx512_variant = variant_of<Avx512Simd, Avx512BlockKeys, Avx512CharacterBlock>(
    "avx512", valid_prefix<Avx512Simd>, SideBySide<Avx512Lanes, Avx512Simd>::merge);

} // namespace bpe
