#include "simd/simd_portable.hpp"
#include "simd/variant_of.hpp"

namespace bpe {

constinit const SimdVariant portable_variant = variant_of<PortableSimd>("portable", nullptr);

} // namespace bpe
