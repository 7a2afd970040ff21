#include "bindings/id_lists.hpp"

namespace bpe::python {

namespace {

constexpr uint32_t most_kept = uint32_t{1} << 18; // the largest vocabularies in use

// A new reference to the int.
PyObject *int_of(uint32_t id) {
  static std::vector<PyObject *> kept;
  if (id >= most_kept)
    return PyLong_FromUnsignedLong(id);
  if (id >= kept.size())
    kept.resize(most_kept);
  PyObject *&value = kept[id];
  if (!value && !(value = PyLong_FromUnsignedLong(id)))
    return nullptr;
  Py_INCREF(value);
  return value;
}

} // namespace

nb::list id_list(const uint32_t *ids, size_t size) {
  nb::list out = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(size)));
  if (!out.is_valid())
    throw nb::python_error();
  for (size_t i = 0; i < size; ++i) {
    PyObject *const id = int_of(ids[i]);
    if (!id)
      throw nb::python_error();
    PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), id);
  }
  return out;
}

} // namespace bpe::python
