// What all bindings share: arguments checked and viewed, results handed over. The bind_*.cpp files and
// bindings.cpp are the only ones that know Python; bpe/_core.pyi says what each call takes and gives.
#pragma once

#include "common/token_buffer.hpp"
#include "encode/encoder.hpp"
#include "pretokenize/automaton.hpp"
#include "text/added_tokens.hpp"
#include "text/utf8.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe::python {

namespace nb = nanobind;

// The items of a sequence, as an argument. nanobind's caster of vectors must not throw, so where memory is
// short it ends the program; this one raises MemoryError.
template <class T> struct Items {
  std::vector<T> values;
  size_t size() const { return values.size(); }
  auto begin() const { return values.begin(); }
  auto end() const { return values.end(); }
  const T &operator[](size_t i) const { return values[i]; }
};

// An argument, nullptr for None, for as long as it is used. nanobind's own caster of shared pointers must not
// throw, so it ends the process where there is no memory.
template <class T> std::shared_ptr<const T> shared(const T *argument) {
  if (argument == nullptr)
    return nullptr;
  PyObject *const owner = nb::find(*argument).release().ptr();
  return {argument, [owner](const T *) {
            if (!Py_IsInitialized())
              return;
            const nb::gil_scoped_acquire locked;
            Py_DECREF(owner);
          }};
}

// Each puts its calls and classes into the module.
void bind_pretokenize(nb::module_ &m);
void bind_automaton(nb::module_ &m); // before all that take one
void bind_normalizer(nb::module_ &m);
void bind_encoder(nb::module_ &m);
void bind_entry_file(nb::module_ &m); // after bind_encoder: it makes encoders
void bind_documents(nb::module_ &m);
void bind_training(nb::module_ &m);

// A contiguous view of a bytes-like object, held while this lives. Raises TypeError or BufferError as Python
// does.
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

// A numpy array that takes over the vector's memory.
template <class T> nb::ndarray<nb::numpy, T, nb::ndim<1>> owned_array(std::vector<T> &&values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T *data = owner->data();
  const size_t size = owner->size();
  nb::capsule free(owner.get(), [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
  owner.release();
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, free);
}

// The same of `size` values at the start of the memory.
template <class T> nb::ndarray<nb::numpy, T, nb::ndim<1>> owned_array(bpe::PageMemory &&memory, size_t size) {
  auto owner = std::make_unique<bpe::PageMemory>(std::move(memory));
  void *const data = owner->data();
  nb::capsule free(owner.get(), [](void *p) noexcept { delete static_cast<bpe::PageMemory *>(p); });
  owner.release();
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, free);
}

inline void require_utf8(const BufferView &text) {
  const size_t bad = bpe::validate_utf8(text.data(), text.size());
  if (bad < text.size())
    throw nb::value_error(("the text is not valid UTF-8 at byte " + std::to_string(bad)).c_str());
}

using TokenArray = nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>>;
using OffsetArray = nb::ndarray<nb::numpy, uint64_t, nb::ndim<1>>;

inline TokenArray owned_tokens(bpe::TokenBuffer &&tokens) {
  auto owner = std::make_unique<bpe::TokenBuffer>(std::move(tokens));
  uint32_t *data = owner->data();
  const size_t size = owner->size();
  nb::capsule free(owner.get(), [](void *p) noexcept { delete static_cast<bpe::TokenBuffer *>(p); });
  owner.release();
  return TokenArray(data, {size}, free);
}

inline std::string_view view_of(const BufferView &buffer) {
  return {reinterpret_cast<const char *>(buffer.data()), buffer.size()};
}

// Valid while the object lives. TypeError names what was given instead.
inline std::string_view view_of_bytes(nb::handle object, const char *what) {
  if (!PyBytes_Check(object.ptr()))
    throw nb::type_error(
        (std::string(what) + " must be bytes, got " + Py_TYPE(object.ptr())->tp_name).c_str());
  return {PyBytes_AS_STRING(object.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(object.ptr()))};
}

inline std::string_view view_of_str(nb::handle object, const char *what) {
  if (!PyUnicode_Check(object.ptr()))
    throw nb::type_error((std::string(what) + " must be str, got " + Py_TYPE(object.ptr())->tp_name).c_str());
  Py_ssize_t size;
  const char *const data = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (!data)
    throw nb::python_error(); // lone surrogates: UnicodeEncodeError, a ValueError
  return {data, static_cast<size_t>(size)};
}

inline uint32_t id_from(nb::handle object, const char *what) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred())
    throw nb::python_error();
  if (overflow != 0 || value < 0 || value > INT32_MAX)
    throw nb::value_error((std::string(what) + " " + nb::cast<std::string>(nb::str(object)) +
                           " is out of range; ids lie in 0 .. 2147483647")
                              .c_str());
  return static_cast<uint32_t>(value);
}

// None where the core says -1.
inline nb::object optional_int(int64_t value) {
  return value < 0 ? nb::none() : nb::object(nb::int_(value));
}

inline size_t thread_count(int64_t threads) {
  if (threads < 1)
    throw nb::value_error(("threads must be at least 1, got " + std::to_string(threads)).c_str());
  return static_cast<size_t>(threads);
}

// AddedTokens, or a dict of bytes and ids for those that are found by their bytes alone.
inline bpe::AddedTokens added_tokens_from(nb::handle special_tokens) {
  if (nb::isinstance<bpe::AddedTokens>(special_tokens))
    return *nb::inst_ptr<bpe::AddedTokens>(special_tokens);
  std::vector<bpe::SpecialToken> tokens;
  for (const auto &[text, id] : nb::cast<nb::dict>(special_tokens))
    tokens.push_back({std::string(view_of_bytes(text, "a special token")), id_from(id, "special token id")});
  std::vector<bpe::SpecialToken> contents = tokens;
  return {std::move(contents), std::move(tokens), {}};
}

// (byte_level, byte_fallback, fuse_unk, has_spaces, unk_id, unk_token, prefix, suffix), or None.
using TextRulesTuple = std::optional<
    std::tuple<bool, bool, bool, bool, std::optional<uint32_t>, nb::bytes, nb::bytes, nb::bytes>>;

inline std::optional<bpe::TextRules> text_rules_from(const TextRulesTuple &rules) {
  if (!rules)
    return std::nullopt;
  const auto &[byte_level, byte_fallback, fuse_unk, has_spaces, unk_id, unk_token, prefix, suffix] = *rules;
  const auto text = [](const nb::bytes &bytes) { return std::string(bytes.c_str(), bytes.size()); };
  return bpe::TextRules{byte_level, byte_fallback,   fuse_unk,     has_spaces,
                        unk_id,     text(unk_token), text(prefix), text(suffix)};
}

inline size_t cache_size_from(int64_t cache_bytes) {
  if (cache_bytes < 0)
    throw nb::value_error(("cache_bytes must be at least 0, got " + std::to_string(cache_bytes)).c_str());
  return static_cast<size_t>(cache_bytes);
}

inline constexpr int64_t default_cache_bytes = int64_t{256} << 20;

inline bpe::SpecialTokens special_tokens_to_cut_at(const Items<nb::bytes> &special_tokens) {
  std::vector<bpe::SpecialToken> tokens;
  for (const nb::bytes &token : special_tokens)
    tokens.push_back({std::string(token.c_str(), token.size()), 0});
  return bpe::SpecialTokens(std::move(tokens));
}

using RowOffsets = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The rows that offsets cut a buffer of so many units into; they must ascend and stay within it.
inline size_t row_count(size_t size, const char *unit, const RowOffsets &offsets) {
  if (offsets.size() == 0)
    throw nb::value_error("offsets is empty; it has a number more than there are rows");
  for (size_t i = 1; i < offsets.size(); ++i)
    if (offsets.data()[i] < offsets.data()[i - 1])
      throw nb::value_error(("offsets[" + std::to_string(i) + "] = " + std::to_string(offsets.data()[i]) +
                             " is below the one before, " + std::to_string(offsets.data()[i - 1]))
                                .c_str());
  if (offsets.data()[offsets.size() - 1] > size)
    throw nb::value_error(("offsets end at " + std::to_string(offsets.data()[offsets.size() - 1]) +
                           ", beyond the buffer of " + std::to_string(size) + " " + unit)
                              .c_str());
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
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.ptr());
    value.values.clear();
    value.values.reserve(static_cast<size_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      T item;
      if (!try_cast(handle(PySequence_Fast_GET_ITEM(items.ptr(), i)), item, false))
        return false;
      value.values.push_back(std::move(item));
    }
    return true;
  }
};

// As nanobind's caster of optional values, which must not throw either.
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
