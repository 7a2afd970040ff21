// The module that Python loads; each bind_*.cpp has a part of it.
#include "bindings/bindings.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of bpe; see bpe/_core.pyi.";
  m.attr("__version__") = TOKENMILL_VERSION;
  bpe::python::bind_pretokenize(m);
  bpe::python::bind_normalization(m);
  bpe::python::bind_encoder(m);
  bpe::python::bind_entry_file(m);
  bpe::python::bind_documents(m);
  bpe::python::bind_training(m);
}
