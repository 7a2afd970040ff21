// Access to sequences and bytes with functions of the stable ABI, which lacks CPython's macros that read the
// objects directly.
#pragma once

#include <nanobind/nanobind.h>

namespace tokenmill::python {

#if defined(Py_LIMITED_API)

// The result of PySequence_Fast, a list or a tuple.
class FastItems {
public:
  explicit FastItems(PyObject *items)
      : items_(items), size_(PyList_Check(items) ? PyList_Size : PyTuple_Size),
        item_(PyList_Check(items) ? PyList_GetItem : PyTuple_GetItem) {}
  Py_ssize_t size() const { return size_(items_); }
  PyObject *operator[](Py_ssize_t place) const { return item_(items_, place); } // borrowed

private:
  PyObject *items_;
  Py_ssize_t (*size_)(PyObject *);
  PyObject *(*item_)(PyObject *, Py_ssize_t);
};

inline Py_ssize_t size_of_bytes(PyObject *bytes) {
  return PyBytes_Size(bytes);
}
inline char *data_of_bytes(PyObject *bytes) {
  return PyBytes_AsString(bytes);
}

#else

class FastItems {
public:
  explicit FastItems(PyObject *items) : items_(items) {}
  Py_ssize_t size() const { return PySequence_Fast_GET_SIZE(items_); }
  PyObject *operator[](Py_ssize_t place) const { return PySequence_Fast_GET_ITEM(items_, place); }

private:
  PyObject *items_;
};

inline Py_ssize_t size_of_bytes(PyObject *bytes) {
  return PyBytes_GET_SIZE(bytes);
}
inline char *data_of_bytes(PyObject *bytes) {
  return PyBytes_AS_STRING(bytes);
}

#endif

} // namespace tokenmill::python
