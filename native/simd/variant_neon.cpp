#if defined(__aarch64__)
#include "simd/simd_neon.hpp"
#include "simd/variant_of.hpp"

namespace bpe {

constinit const SimdVariant neon_variant = variant_of<NeonSimd>("neon", valid_prefix<NeonSimd>);

} // namespace bpe
#endif
