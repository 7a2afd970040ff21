// Python bindings for decoding IDs to bytes and texts, as methods of TokenizerCore.
#include "bindings/tokenizer_core.hpp"

#include <algorithm>

namespace bpe::python {

namespace {

int64_t id_of_item(PyObject *item, Py_ssize_t place) {
  int overflow = 0;
  if (PyLong_CheckExact(item)) [[likely]] {
    const long long id = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (overflow == 0)
      return id;
  }
  const nb::object index = nb::steal(PyNumber_Index(item));
  if (!index.is_valid())
    throw nb::python_error();
  const long long id = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0)
    throw std::invalid_argument("ids[" + std::to_string(place) + "] = " +
                                nb::cast<std::string>(nb::str(index)) + " is not an id of this vocabulary");
  return id;
}

std::vector<int64_t> ids_from(nb::handle ids) {
  std::vector<int64_t> out;
  nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
  if (!PyList_CheckExact(ids.ptr()) && nb::try_cast(ids, array, false)) {
    out.resize(array.size());
    const auto copy = [&]<class T>(T) {
      std::copy_n(static_cast<const T *>(array.data()), out.size(), out.begin());
    };
    if (array.dtype() == nb::dtype<uint16_t>())
      return copy(uint16_t()), out;
    if (array.dtype() == nb::dtype<uint32_t>())
      return copy(uint32_t()), out;
    if (array.dtype() == nb::dtype<int32_t>())
      return copy(int32_t()), out;
    if (array.dtype() == nb::dtype<int64_t>())
      return copy(int64_t()), out;
    out.clear(); // other types: item by item
  }
  const nb::object items = nb::steal(PySequence_Fast(ids.ptr(), "ids must be a sequence of int or an array"));
  if (!items.is_valid())
    throw nb::python_error();
  const tokenmill::python::FastItems fast(items.ptr());
  out.reserve(static_cast<size_t>(fast.size()));
  for (Py_ssize_t i = 0; i < fast.size();
       ++i) // __index__ of an item may change a list, so read its size each time
    out.push_back(id_of_item(fast[i], i));
  return out;
}

// Below this number of IDs, keep the GIL, as for short texts.
constexpr size_t gil_release_ids = 2048;

nb::object bytes_from(const TokenizerCore &core, const std::vector<int64_t> &ids) {
  const bpe::Decoder &decoder = core.decoder;
  if (decoder.has_rule()) {
    const std::string bytes = decoder.decode_text(ids.data(), ids.size(), false);
    return nb::bytes(bytes.data(), bytes.size());
  }
  const size_t size = decoder.size_of(ids.data(), ids.size());
  nb::object out = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!out.is_valid())
    throw nb::python_error();
  char *const data = tokenmill::python::data_of_bytes(out.ptr());
  if (ids.size() < gil_release_ids) {
    decoder.write(ids.data(), ids.size(), data, data + size);
  } else {
    nb::gil_scoped_release unlocked;
    decoder.write(ids.data(), ids.size(), data, data + size);
  }
  return out;
}

// `room` is reused by successive calls.
nb::object text_from(const TokenizerCore &core, const int64_t *ids, size_t count, const char *errors,
                     std::string &room) {
  const bpe::Decoder &decoder = core.decoder;
  if (decoder.has_rule()) {
    room = decoder.decode_text(ids, count, std::string_view(errors) == "replace");
  } else {
    room.resize(decoder.size_of(ids, count));
    decoder.write(ids, count, room.data(), room.data() + room.size());
  }
  nb::object out = nb::steal(PyUnicode_DecodeUTF8(room.data(), static_cast<Py_ssize_t>(room.size()), errors));
  if (!out.is_valid())
    throw nb::python_error();
  return out;
}

nb::list texts_from(const TokenizerCore &core,
                    nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> tokens,
                    nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> offsets,
                    const char *errors) {
  nb::list out;
  std::vector<int64_t> ids;
  std::string room;
  for (size_t row = 0; row + 1 < offsets.size(); ++row) {
    const uint64_t start = offsets.data()[row], stop = offsets.data()[row + 1];
    if (start > stop || stop > tokens.size())
      throw std::invalid_argument("row " + std::to_string(row) + " is [" + std::to_string(start) + ", " +
                                  std::to_string(stop) + ") of " + std::to_string(tokens.size()) + " tokens");
    ids.assign(tokens.data() + start, tokens.data() + stop);
    try {
      out.append(text_from(core, ids.data(), ids.size(), errors, room));
    } catch (const std::invalid_argument &error) {
      throw std::invalid_argument("row " + std::to_string(row) + ": " + error.what());
    }
  }
  return out;
}

} // namespace

void bind_decoding(nb::class_<TokenizerCore> &encoder) {
  encoder
      .def(
          "decode", [](const TokenizerCore &core, nb::handle ids) { return bytes_from(core, ids_from(ids)); },
          nb::arg("ids"))
      .def(
          "decode_text",
          [](const TokenizerCore &core, nb::handle ids, const char *errors) {
            const std::vector<int64_t> values = ids_from(ids);
            std::string room;
            return text_from(core, values.data(), values.size(), errors, room);
          },
          nb::arg("ids"), nb::arg("errors"))
      .def(
          "decode_rows",
          [](const TokenizerCore &core,
             nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> tokens,
             nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> offsets,
             const char *errors) { return texts_from(core, tokens, offsets, errors); },
          nb::arg("tokens"), nb::arg("offsets"), nb::arg("errors"));
}

} // namespace bpe::python
