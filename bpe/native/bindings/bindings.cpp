// The Python extension module. Each bind_*.cpp adds a part of it.
#include "bindings/bindings.hpp"
#include "simd/simd_variants.hpp"

#include <cstdlib>

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of bpe; see bpe/_core.pyi.";
  m.attr("__version__") = TOKENMILL_VERSION;
  nanobind::set_leak_warnings(false); // objects that Python keeps until exit are not leaks
  bpe::python::bind_automaton(m);
  m.def("simd_variants", &bpe::simd_variant_names);
  m.def("set_simd_variant", &bpe::choose_simd_variant, nanobind::arg("name"));
  if (const char *name = std::getenv("BPE_SIMD"); name != nullptr && *name != '\0')
    bpe::choose_simd_variant(name);
  bpe::python::bind_normalizer(m);
  bpe::python::bind_encoder(m);
  bpe::python::bind_session(m);
  bpe::python::bind_entry_file(m);
  bpe::python::bind_training(m);
}
