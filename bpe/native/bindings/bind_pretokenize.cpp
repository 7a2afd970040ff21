// Python bindings of SIMD variants.
#include "bindings/bindings.hpp"
#include "simd/simd_variants.hpp"

#include <cstdlib>

namespace bpe::python {

void bind_pretokenize(nb::module_ &m) {
  m.def("simd_variants", &bpe::simd_variant_names);
  m.def("set_simd_variant", &bpe::choose_simd_variant, nb::arg("name"));
  if (const char *name = std::getenv("BPE_SIMD"); name != nullptr && *name != '\0')
    bpe::choose_simd_variant(name);
}

} // namespace bpe::python
