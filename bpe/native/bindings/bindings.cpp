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
  bpe::python::bind_entry_file(m);
  bpe::python::bind_documents(m);
  bpe::python::bind_training(m);

  // Where its table of the objects there are cannot grow, nanobind ends the process; so it grows here, before
  // there is any work, to more than a process ever has at once.
  nanobind::list objects;
  for (int i = 0; i < 256; ++i)
    objects.append(m.attr("Xxh64")());
}
