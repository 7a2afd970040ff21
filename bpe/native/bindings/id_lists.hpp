// Lists of ids, for Python.
//
// An int below 2^18 is made once and kept for the process: an id in a list then costs a reference, where an
// object of its own would cost more than the encoding of the text did. With the GIL held.
#pragma once

#include "bindings/bindings.hpp"

namespace bpe::python {

// A list of these ids. Throws python_error where there is no memory.
nb::list id_list(const uint32_t *ids, size_t size);

} // namespace bpe::python
