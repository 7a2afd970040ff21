// The Python extension module. Each bind_*.cpp adds a part of it.
#include "bindings/bindings.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of bpe; see bpe/_core.pyi.";
  m.attr("__version__") = TOKENMILL_VERSION;
  nanobind::set_leak_warnings(false); // objects that Python keeps until exit are not leaks
  bpe::python::bind_automaton(m);
  bpe::python::bind_pretokenize(m);
  bpe::python::bind_normalizer(m);
  bpe::python::bind_encoder(m);
  bpe::python::bind_session(m);
  bpe::python::bind_entry_file(m);
  bpe::python::bind_training(m);
}
