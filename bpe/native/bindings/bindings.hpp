// Helpers shared by the bindings of bpe: checked views of tokens and text, and conversion of results. Only
// the bind_*.cpp files and bindings.cpp depend on Python; bpe/_core.pyi documents the arguments and results
// of each call.
#pragma once

#include "bindings/arguments.hpp"
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

// Share ownership of an argument, nullptr for None. nanobind's caster of shared pointers must not throw, so
// it ends the process when memory runs out.
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

// Each adds its functions and classes to the module.
void bind_automaton(nb::module_ &m); // before all that take an automaton
void bind_normalizer(nb::module_ &m);
void bind_encoder(nb::module_ &m);
void bind_session(nb::module_ &m);    // after bind_encoder
void bind_entry_file(nb::module_ &m); // after bind_encoder: it creates encoders
void bind_training(nb::module_ &m);

// Steps of a normalizer as (kind, first, second), as listed by `bpe.normalizers`.
std::vector<bpe::Normalizer::Kind> steps_from(const Items<nb::tuple> &steps);

// The same for `size` values at the start of the memory.
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
    throw std::invalid_argument("the text is not valid UTF-8 at byte " + std::to_string(bad));
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

// Valid during the lifetime of the object. Raises TypeError with the actual type.
inline std::string_view view_of_bytes(nb::handle object, const char *what) {
  if (!PyBytes_Check(object.ptr()))
    throw nb::type_error(
        (std::string(what) + " must be bytes, got " + nb::type_name(object.type()).c_str()).c_str());
  return {tokenmill::python::data_of_bytes(object.ptr()),
          static_cast<size_t>(tokenmill::python::size_of_bytes(object.ptr()))};
}

inline std::string_view view_of_str(nb::handle object, const char *what) {
  if (!PyUnicode_Check(object.ptr()))
    throw nb::type_error(
        (std::string(what) + " must be str, got " + nb::type_name(object.type()).c_str()).c_str());
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
    throw std::invalid_argument(std::string(what) + " " + nb::cast<std::string>(nb::str(object)) +
                                " is out of range; ids lie in 0 .. 2147483647");
  return static_cast<uint32_t>(value);
}

// Return None for -1.
inline nb::object optional_int(int64_t value) {
  return value < 0 ? nb::none() : nb::object(nb::int_(value));
}

inline size_t thread_count(int64_t threads) {
  if (threads < 1)
    throw std::invalid_argument("threads must be at least 1, got " + std::to_string(threads));
  return static_cast<size_t>(threads);
}

// AddedTokens, or a dict of bytes and IDs for tokens that are found by their bytes alone.
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
    throw std::invalid_argument("cache_bytes must be at least 0, got " + std::to_string(cache_bytes));
  return static_cast<size_t>(cache_bytes);
}

inline constexpr int64_t default_cache_bytes = int64_t{256} << 20;

inline bpe::SpecialTokens special_tokens_to_cut_at(const Items<nb::bytes> &special_tokens) {
  std::vector<bpe::SpecialToken> tokens;
  for (const nb::bytes &token : special_tokens)
    tokens.push_back({std::string(token.c_str(), token.size()), 0});
  return bpe::SpecialTokens(std::move(tokens));
}

} // namespace bpe::python
