// The module that Python loads; each bind_*.cpp has a part of it.
#include "bindings/bindings.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of bpe; see bpe/_core.pyi.";
  m.attr("__version__") = TOKENMILL_VERSION;
  nanobind::set_leak_warnings(false); // what Python keeps for the whole run lives until the process ends
  bpe::python::bind_automaton(m);
  bpe::python::bind_pretokenize(m);
  bpe::python::bind_normalizer(m);
  bpe::python::bind_encoder(m);
  bpe::python::bind_session(m);
  bpe::python::bind_entry_file(m);
  bpe::python::bind_training(m);
}
