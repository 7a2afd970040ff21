#include "make_keys_avx512.hpp"
#include "pretokenize_blocks.hpp"
#include "simd_avx512.hpp"

namespace bpe {

constinit const SimdVariant avx512_variant =
    variant_of<Avx512Simd>("avx512", valid_prefix<Avx512Simd>, make_keys_avx512);

} // namespace bpe
