#include "lanes_avx2.hpp"
#include "merge_long_by_lanes.hpp"
#include "merge_short_by_lanes.hpp"
#include "simd_avx2.hpp"
#include "variant_of.hpp"

namespace bpe {

constinit const SimdVariant avx2_variant =
    variant_of<Avx2Simd>("avx2", valid_prefix<Avx2Simd>, ShortSideBySide<Avx2Lanes>::merge, make_keys,
                         LongSideBySide<Avx2Lanes, Avx2Simd>::merge);

} // namespace bpe
