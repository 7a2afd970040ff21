#include "bindings/id_lists.hpp"

#include "common/prefetch.hpp"

namespace bpe::python {

namespace {

constexpr uint32_t most_kept = uint32_t{1} << 18; // the largest vocabularies in use

std::vector<PyObject *> &kept_ints() {
  static std::vector<PyObject *> kept(most_kept);
  return kept;
}

// Return a new reference to the int.
PyObject *int_of(std::vector<PyObject *> &kept, uint32_t id) {
  if (id >= most_kept)
    return PyLong_FromUnsignedLong(id);
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
  std::vector<PyObject *> &kept = kept_ints();
  constexpr size_t ahead = 8; // prefetch distance, since the objects are scattered in memory
  for (size_t i = 0; i < size; ++i) {
    if (i + ahead < size && ids[i + ahead] < most_kept)
      prefetch_to_write(kept[ids[i + ahead]]);
    PyObject *const id = int_of(kept, ids[i]);
    if (!id)
      throw nb::python_error();
    NB_LIST_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), id);
  }
  return out;
}

} // namespace bpe::python
