// The only file that knows Python: checks arguments, views buffers, releases the GIL, owns the results.
// bpe/_core.pyi says what each call takes and gives.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of bpe; see bpe/_core.pyi.";
  m.attr("__version__") = TOKENMILL_VERSION;
  // -- pretokenizing
  // -- encoding
  // -- training
}
