// Checked views of arguments for any module (bytes-like objects, sequences, rows of a buffer), and vectors
// returned as arrays.
#pragma once

#include "bindings/stable_abi.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bpe::python {

namespace nb = nanobind;

// The items of a sequence argument. nanobind's caster of vectors must not throw, so it ends the process when
// memory runs out. This one raises MemoryError.
template <class T> struct Items {
  std::vector<T> values;
  size_t size() const { return values.size(); }
  auto begin() const { return values.begin(); }
  auto end() const { return values.end(); }
  const T &operator[](size_t i) const { return values[i]; }
};

// A contiguous view of a bytes-like object, valid during its lifetime. Raises TypeError or BufferError like
// Python.
class BufferView {
public:
  explicit BufferView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0)
      throw nb::python_error();
  }
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView &) = delete;
  BufferView &operator=(const BufferView &) = delete;
  const uint8_t *data() const { return static_cast<const uint8_t *>(view_.buf); }
  size_t size() const { return static_cast<size_t>(view_.len); }

private:
  Py_buffer view_;
};

// Return a numpy array that takes over the memory of the vector.
template <class T> nb::ndarray<nb::numpy, T, nb::ndim<1>> owned_array(std::vector<T> &&values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T *data = owner->data();
  const size_t size = owner->size();
  nb::capsule free(owner.get(), [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
  owner.release();
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, free);
}

using RowOffsets = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Return the number of rows that the offsets make of a buffer of `size` units. Offsets must ascend and stay
// within it.
inline size_t row_count(size_t size, const char *unit, const RowOffsets &offsets) {
  if (offsets.size() == 0)
    throw std::invalid_argument("offsets is empty; it has a number more than there are rows");
  for (size_t i = 1; i < offsets.size(); ++i)
    if (offsets.data()[i] < offsets.data()[i - 1])
      throw std::invalid_argument("offsets[" + std::to_string(i) +
                                  "] = " + std::to_string(offsets.data()[i]) + " is below the one before, " +
                                  std::to_string(offsets.data()[i - 1]));
  if (offsets.data()[offsets.size() - 1] > size)
    throw std::invalid_argument("offsets end at " + std::to_string(offsets.data()[offsets.size() - 1]) +
                                ", beyond the buffer of " + std::to_string(size) + " " + unit);
  return offsets.size() - 1;
}
inline size_t row_count(const BufferView &buffer, const RowOffsets &offsets) {
  return row_count(buffer.size(), "bytes", offsets);
}

} // namespace bpe::python

template <class T> struct nanobind::detail::type_caster<bpe::python::Items<T>> {
  NB_TYPE_CASTER(bpe::python::Items<T>,
                 const_name("collections.abc.Sequence[") + make_caster<T>::Name + const_name("]"))

  bool from_python(handle source, uint32_t, cleanup_list *) {
    const object items = steal(PySequence_Fast(source.ptr(), ""));
    if (!items.is_valid()) {
      PyErr_Clear();
      return false;
    }
    const tokenmill::python::FastItems fast(items.ptr());
    const Py_ssize_t size = fast.size();
    value.values.clear();
    value.values.reserve(static_cast<size_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      T item;
      if (!try_cast(handle(fast[i]), item, false))
        return false;
      value.values.push_back(std::move(item));
    }
    return true;
  }
};

// Like nanobind's caster of optional values, which must not throw either.
template <class T> struct nanobind::detail::type_caster<std::optional<bpe::python::Items<T>>> {
  NB_TYPE_CASTER(std::optional<bpe::python::Items<T>>,
                 optional_name(make_caster<bpe::python::Items<T>>::Name))

  bool from_python(handle source, uint32_t flags, cleanup_list *cleanup) {
    value.reset();
    if (source.is_none())
      return true;
    make_caster<bpe::python::Items<T>> items;
    if (!items.from_python(source, flags, cleanup))
      return false;
    value = std::move(items.value);
    return true;
  }
};
