// Lists of IDs for Python.
//
// Ints below 2^18 are created once and kept for the process. An ID in a list then costs a reference, while a
// new object would cost more than encoding the text. Requires the GIL.
#pragma once

#include "bindings/bindings.hpp"

namespace bpe::python {

// Return a list of these IDs. Throws python_error if memory runs out.
nb::list id_list(const uint32_t *ids, size_t size);

} // namespace bpe::python
