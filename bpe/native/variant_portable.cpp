#include "pretokenize_blocks.hpp"
#include "simd_portable.hpp"

namespace bpe {

constinit const SimdVariant portable_variant = variant_of<PortableSimd>("portable", nullptr);

} // namespace bpe
