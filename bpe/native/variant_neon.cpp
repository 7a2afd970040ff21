#if defined(__aarch64__)
#include "pretokenize_blocks.hpp"
#include "simd_neon.hpp"

namespace bpe {

constinit const SimdVariant neon_variant = variant_of<NeonSimd>("neon", valid_prefix<NeonSimd>);

} // namespace bpe
#endif
