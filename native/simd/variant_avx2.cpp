#include "cache/block_keys_avx2.hpp"
#include "merge/merge_by_lanes.hpp"
#include "simd/lanes_avx2.hpp"
#include "simd/simd_avx2.hpp"
#include "simd/variant_of.hpp"

namespace bpe {

constinit const SimdVariant avx2_variant = variant_of<Avx2Simd, Avx2BlockKeys>(
    "avx2", valid_prefix<Avx2Simd>, SideBySide<Avx2Lanes, Avx2Simd>::merge);

} // namespace bpe
