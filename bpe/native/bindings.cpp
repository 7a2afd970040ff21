// The only file that knows Python: checks arguments, views buffers, releases the GIL, owns the results.
// bpe/_core.pyi says what each call takes and gives.
#include "content_hash.hpp"
#include "decoder.hpp"
#include "encoder.hpp"
#include "entry_list.hpp"
#include "find_bytes.hpp"
#include "image.hpp"
#include "json_lines.hpp"
#include "model_text.hpp"
#include "nfc.hpp"
#include "pretoken_counts.hpp"
#include "pretokenize.hpp"
#include "simd_variants.hpp"
#include "special_tokens.hpp"
#include "trainer.hpp"
#include "utf8.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

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

// -- pretokenizing

void require_utf8(const BufferView &text) {
  const size_t bad = bpe::validate_utf8(text.data(), text.size());
  if (bad < text.size())
    throw nb::value_error(("the text is not valid UTF-8 at byte " + std::to_string(bad)).c_str());
}

void bind_pretokenize(nb::module_ &m) {
  m.def(
      "validate_utf8",
      [](nb::object buffer) -> int64_t {
        const BufferView text(buffer);
        nb::gil_scoped_release unlocked;
        const size_t bad = bpe::validate_utf8(text.data(), text.size());
        return bad < text.size() ? static_cast<int64_t>(bad) : -1;
      },
      nb::arg("buffer"));
  m.def(
      "pretokenize",
      [](nb::object buffer, const std::string &pattern) {
        const BufferView text(buffer);
        require_utf8(text);
        std::vector<uint64_t> ends;
        {
          nb::gil_scoped_release unlocked;
          bpe::Pretokenizer pretokenizer(bpe::pattern_from_name(pattern));
          pretokenizer.reset(text.data(), text.size());
          for (bpe::Spans spans = pretokenizer.next(); spans.count > 0; spans = pretokenizer.next()) {
            const uint64_t origin = static_cast<uint64_t>(spans.origin - text.data());
            for (size_t i = 0; i < spans.count; ++i)
              ends.push_back(origin + spans.ends[i]);
          }
        }
        return owned_array(std::move(ends));
      },
      nb::arg("buffer"), nb::arg("pattern"));
  m.def(
      "last_safe_cut",
      [](nb::object buffer, const std::string &pattern) {
        const BufferView text(buffer);
        nb::gil_scoped_release unlocked;
        return bpe::last_safe_cut(bpe::pattern_from_name(pattern), text.data(), text.size());
      },
      nb::arg("buffer"), nb::arg("pattern"));
  m.def("simd_variants", &bpe::simd_variant_names);
  m.def("set_simd_variant", &bpe::choose_simd_variant, nb::arg("name"));
  if (const char *name = std::getenv("BPE_SIMD"); name != nullptr && *name != '\0')
    bpe::choose_simd_variant(name);
}

// -- encoding

// An encoder with the decoder that reads its vocabulary.
struct Codec {
  std::unique_ptr<BufferView> start_image; // of the encoder
  bpe::Encoder encoder;
  bpe::Decoder decoder;

  // What an Encoder is made of.
  template <class First, class Second, class... Rest>
  Codec(First &&first, Second &&second, Rest &&...rest)
      : encoder(std::forward<First>(first), std::forward<Second>(second), std::forward<Rest>(rest)...),
        decoder(encoder.vocabulary(), encoder.special_tokens()) {}
  Codec(const Codec &) = delete;
};

using TokenArray = nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>>;
using OffsetArray = nb::ndarray<nb::numpy, uint64_t, nb::ndim<1>>;

TokenArray owned_tokens(bpe::TokenBuffer &&tokens) {
  auto owner = std::make_unique<bpe::TokenBuffer>(std::move(tokens));
  uint32_t *data = owner->data();
  const size_t size = owner->size();
  nb::capsule free(owner.get(), [](void *p) noexcept { delete static_cast<bpe::TokenBuffer *>(p); });
  owner.release();
  return TokenArray(data, {size}, free);
}

std::string_view view_of(const BufferView &buffer) {
  return {reinterpret_cast<const char *>(buffer.data()), buffer.size()};
}

// Valid while the object lives. TypeError names what was given instead.
std::string_view view_of_bytes(nb::handle object, const char *what) {
  if (!PyBytes_Check(object.ptr()))
    throw nb::type_error(
        (std::string(what) + " must be bytes, got " + Py_TYPE(object.ptr())->tp_name).c_str());
  return {PyBytes_AS_STRING(object.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(object.ptr()))};
}

std::string_view view_of_str(nb::handle object, const char *what) {
  if (!PyUnicode_Check(object.ptr()))
    throw nb::type_error((std::string(what) + " must be str, got " + Py_TYPE(object.ptr())->tp_name).c_str());
  Py_ssize_t size;
  const char *const data = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (!data)
    throw nb::python_error(); // lone surrogates: UnicodeEncodeError, a ValueError
  return {data, static_cast<size_t>(size)};
}

uint32_t id_from(nb::handle object, const char *what) {
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

size_t thread_count(int64_t threads) {
  if (threads < 1)
    throw nb::value_error(("threads must be at least 1, got " + std::to_string(threads)).c_str());
  return static_cast<size_t>(threads);
}

std::vector<bpe::Vocabulary::Entry> entries_from(nb::dict entries) {
  std::vector<bpe::Vocabulary::Entry> out;
  out.reserve(entries.size());
  for (const auto &[id, bytes] : entries)
    out.push_back({id_from(id, "entry id"), view_of_bytes(bytes, "an entry")});
  return out;
}

std::optional<bpe::Vocabulary::Merges> merges_from(nb::handle merges, nb::object &keep_alive) {
  if (merges.is_none())
    return std::nullopt;
  keep_alive = nb::steal(PySequence_Tuple(merges.ptr()));
  if (!keep_alive.is_valid())
    throw nb::python_error();
  bpe::Vocabulary::Merges out;
  out.reserve(nb::len(keep_alive));
  for (nb::handle merge : nb::borrow<nb::tuple>(keep_alive)) {
    if (!PyTuple_Check(merge.ptr()) || PyTuple_GET_SIZE(merge.ptr()) != 2)
      throw nb::type_error(("merge " + std::to_string(out.size()) + " must be a tuple of two bytes").c_str());
    out.emplace_back(view_of_bytes(PyTuple_GET_ITEM(merge.ptr(), 0), "a merge's left part"),
                     view_of_bytes(PyTuple_GET_ITEM(merge.ptr(), 1), "a merge's right part"));
  }
  return out;
}

std::vector<bpe::SpecialToken> special_tokens_from(nb::dict special_tokens) {
  std::vector<bpe::SpecialToken> out;
  for (const auto &[text, id] : special_tokens)
    out.push_back({std::string(view_of_bytes(text, "a special token")), id_from(id, "special token id")});
  return out;
}

std::optional<bpe::Pattern> pattern_from(const std::optional<std::string> &pattern) {
  return pattern ? std::optional(bpe::pattern_from_name(*pattern)) : std::nullopt;
}

size_t cache_size_from(int64_t cache_bytes) {
  if (cache_bytes < 0)
    throw nb::value_error(("cache_bytes must be at least 0, got " + std::to_string(cache_bytes)).c_str());
  return static_cast<size_t>(cache_bytes);
}

constexpr int64_t default_cache_bytes = int64_t{256} << 20;

// What a tokenizer's file holds before it is known which of its entries are special tokens.
struct EntryFile {
  bpe::ModelJson model;
  bool has_merges;
  nb::object document; // of a tokenizer.json

  const bpe::EntryList &entries() const { return model.entries; }
};

nb::object read_entry_file(std::optional<bpe::ModelJson> &&model, bool has_merges, nb::object document) {
  if (!model)
    return nb::none();
  return nb::cast(new EntryFile{std::move(*model), has_merges, std::move(document)},
                  nb::rv_policy::take_ownership);
}

nb::object optional_int(int64_t value) {
  return value < 0 ? nb::none() : nb::object(nb::int_(value));
}

void bind_entry_file(nb::module_ &m) {
  nb::class_<EntryFile>(m, "EntryFile")
      .def_static(
          "read_model_json",
          [](nb::bytes document) {
            std::optional<bpe::ModelJson> model;
            {
              nb::gil_scoped_release unlocked;
              model = bpe::read_model_json({document.c_str(), document.size()});
            }
            return read_entry_file(std::move(model), true, document);
          },
          nb::arg("document"))
      .def_static(
          "read_rank_file",
          [](nb::bytes data) {
            std::optional<bpe::ModelJson> model;
            {
              nb::gil_scoped_release unlocked;
              if (auto entries = bpe::read_rank_file({data.c_str(), data.size()})) {
                model.emplace();
                model->entries = std::move(*entries);
              }
            }
            return read_entry_file(std::move(model), false, nb::none());
          },
          nb::arg("data"))
      .def("outline",
           [](const EntryFile &file) {
             if (file.document.is_none())
               throw nb::value_error("a rank file has no outline");
             const auto document = nb::cast<nb::bytes>(file.document);
             const std::string out = bpe::outline({document.c_str(), document.size()}, file.model);
             return nb::bytes(out.data(), out.size());
           })
      .def("__len__", [](const EntryFile &file) { return file.entries().size() + file.model.texts.size(); })
      .def_prop_ro("texts",
                   [](const EntryFile &file) {
                     nb::dict out;
                     for (const auto &[text, id] : file.model.texts)
                       out[nb::str(text.data(), text.size())] = id;
                     return out;
                   })
      .def_prop_ro("max_id",
                   [](const EntryFile &file) {
                     int64_t highest = -1;
                     for (const uint32_t id : file.entries().ids)
                       highest = std::max<int64_t>(highest, id);
                     for (const auto &text : file.model.texts)
                       highest = std::max<int64_t>(highest, text.second);
                     return highest;
                   })
      .def(
          "has_id",
          [](const EntryFile &file, int64_t id) {
            const std::vector<uint32_t> &ids = file.entries().ids;
            return std::find(ids.begin(), ids.end(), id) != ids.end() ||
                   std::any_of(file.model.texts.begin(), file.model.texts.end(),
                               [&](const auto &text) { return text.second == id; });
          },
          nb::arg("id"))
      .def(
          "find",
          [](const EntryFile &file, const std::vector<nb::bytes> &wanted) {
            std::unordered_map<std::string_view, std::vector<size_t>> places;
            for (size_t i = 0; i < wanted.size(); ++i)
              places[{wanted[i].c_str(), wanted[i].size()}].push_back(i);
            std::vector<int64_t> found(wanted.size(), -1);
            for (size_t entry = 0; !places.empty() && entry < file.entries().size(); ++entry)
              if (const auto at = places.find(file.entries()[entry]); at != places.end())
                for (const size_t i : at->second)
                  found[i] = file.entries().ids[entry];
            nb::list out;
            for (const int64_t id : found)
              out.append(optional_int(id));
            return out;
          },
          nb::arg("wanted"))
      .def(
          "encoder",
          [](const EntryFile &file, nb::dict special_tokens, const std::vector<uint32_t> &dropped_ids,
             const std::optional<std::string> &pattern, bool whole_pretokens, int64_t cache_bytes) {
            const size_t cache_size = cache_size_from(cache_bytes);
            std::vector<bpe::SpecialToken> special_list = special_tokens_from(special_tokens);
            const std::optional<bpe::Pattern> known_pattern = pattern_from(pattern);
            const bpe::EntryList &entries = file.entries();
            nb::gil_scoped_release unlocked;
            const std::unordered_set<uint32_t> dropped(dropped_ids.begin(), dropped_ids.end());
            std::vector<bpe::Vocabulary::Entry> kept;
            kept.reserve(entries.size());
            for (size_t i = 0; i < entries.size(); ++i)
              if (dropped.empty() || !dropped.contains(entries.ids[i]))
                kept.push_back({entries.ids[i], entries[i]});
            std::optional<bpe::Vocabulary::Merges> merges;
            if (file.has_merges) {
              merges.emplace();
              merges->reserve(file.model.merge_ends.size() / 2);
              for (size_t i = 0; i < file.model.merge_ends.size(); i += 2)
                merges->emplace_back(file.model.merge_part(i), file.model.merge_part(i + 1));
            }
            auto codec = std::make_unique<Codec>(std::move(kept), merges, std::move(special_list),
                                                 known_pattern, whole_pretokens, cache_size);
            if (merges && codec->encoder.vocabulary().pair_count() < merges->size())
              throw std::invalid_argument("a merge is listed twice");
            return codec.release();
          },
          nb::arg("special_tokens"), nb::arg("dropped_ids"), nb::arg("pattern").none(),
          nb::arg("whole_pretokens"), nb::arg("cache_bytes") = default_cache_bytes,
          nb::rv_policy::take_ownership);
}

// A dict of an encoder's entries; bytes objects of their own.
nb::dict entries_of(const Codec &codec) {
  const bpe::Vocabulary &vocabulary = codec.encoder.vocabulary();
  nb::dict out;
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol) {
    const std::string_view bytes = vocabulary.bytes(symbol);
    out[nb::int_(vocabulary.id(symbol))] = nb::bytes(bytes.data(), bytes.size());
  }
  return out;
}

// uint32[2 * m], the ids of left and right of each merge.
std::vector<uint32_t> merge_ids_of(const Codec &codec) {
  const bpe::Vocabulary &vocabulary = codec.encoder.vocabulary();
  std::vector<uint32_t> ids = bpe::listed_merges(vocabulary);
  for (uint32_t &symbol : ids)
    symbol = vocabulary.id(symbol);
  return ids;
}

// A call on less text than this keeps the GIL: handing it over may cost a waiting thread's whole turn (5 ms),
// while this much text takes about 20 microseconds.
constexpr size_t gil_release_bytes = 4096;

nb::list encode(const Codec &codec, nb::handle text, bool special) {
  const std::string_view bytes = view_of_str(text, "text");
  std::vector<uint32_t> ids;
  if (bytes.size() < gil_release_bytes) {
    codec.encoder.encode(bytes, special, ids);
  } else {
    nb::gil_scoped_release unlocked;
    codec.encoder.encode(bytes, special, ids);
  }
  nb::list out = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(ids.size())));
  if (!out.is_valid())
    throw nb::python_error();
  for (size_t i = 0; i < ids.size(); ++i) {
    PyObject *const id = PyLong_FromUnsignedLong(ids[i]);
    if (!id)
      throw nb::python_error();
    PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), id);
  }
  return out;
}

using LentTokens = nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

bpe::TokenBuffer lent_tokens(const LentTokens &out, size_t text_bytes) {
  const size_t needed = bpe::Encoder::out_tokens(text_bytes);
  if (out.size() < needed)
    throw nb::value_error(("out has room for " + std::to_string(out.size()) + " tokens; a buffer of " +
                           std::to_string(text_bytes) + " bytes needs " + std::to_string(needed))
                              .c_str());
  return {out.data(), out.size()};
}

std::pair<TokenArray, OffsetArray> owned_rows(bpe::EncodedRows &&rows) {
  return {owned_tokens(std::move(rows.tokens)), owned_array(std::move(rows.offsets))};
}

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
    throw nb::value_error(("ids[" + std::to_string(place) + "] = " + nb::cast<std::string>(nb::str(index)) +
                           " is not an id of this vocabulary")
                              .c_str());
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
    out.clear(); // any other: item by item
  }
  const nb::object items = nb::steal(PySequence_Fast(ids.ptr(), "ids must be a sequence of int or an array"));
  if (!items.is_valid())
    throw nb::python_error();
  // An item's __index__ may change a list, so its size is asked for anew.
  out.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(items.ptr())));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i)
    out.push_back(id_of_item(PySequence_Fast_GET_ITEM(items.ptr(), i), i));
  return out;
}

// Fewer ids than these keep the GIL, as short texts do.
constexpr size_t gil_release_ids = 2048;

nb::object bytes_from(const bpe::Decoder &decoder, const std::vector<int64_t> &ids) {
  const size_t size = decoder.size_of(ids.data(), ids.size());
  nb::object out = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!out.is_valid())
    throw nb::python_error();
  char *const data = PyBytes_AS_STRING(out.ptr());
  if (ids.size() < gil_release_ids) {
    decoder.write(ids.data(), ids.size(), data);
  } else {
    nb::gil_scoped_release unlocked;
    decoder.write(ids.data(), ids.size(), data);
  }
  return out;
}

// `room` is used again and again by calls one after the other.
nb::object text_from(const bpe::Decoder &decoder, const int64_t *ids, size_t count, const char *errors,
                     std::vector<char> &room) {
  const size_t size = decoder.size_of(ids, count);
  if (room.size() < size)
    room.resize(size);
  decoder.write(ids, count, room.data());
  nb::object out = nb::steal(PyUnicode_DecodeUTF8(room.data(), static_cast<Py_ssize_t>(size), errors));
  if (!out.is_valid())
    throw nb::python_error();
  return out;
}

nb::list texts_from(const bpe::Decoder &decoder,
                    nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> tokens,
                    nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> offsets,
                    const char *errors) {
  nb::list out;
  std::vector<int64_t> ids;
  std::vector<char> room;
  for (size_t row = 0; row + 1 < offsets.size(); ++row) {
    const uint64_t start = offsets.data()[row], stop = offsets.data()[row + 1];
    if (start > stop || stop > tokens.size())
      throw nb::value_error(("row " + std::to_string(row) + " is [" + std::to_string(start) + ", " +
                             std::to_string(stop) + ") of " + std::to_string(tokens.size()) + " tokens")
                                .c_str());
    ids.assign(tokens.data() + start, tokens.data() + stop);
    try {
      out.append(text_from(decoder, ids.data(), ids.size(), errors, room));
    } catch (const std::invalid_argument &error) {
      throw nb::value_error(("row " + std::to_string(row) + ": " + error.what()).c_str());
    }
  }
  return out;
}

void bind_normalization(nb::module_ &m) {
  m.def(
      "doubtful_for_nfc",
      [](nb::object buffer) {
        const BufferView text(buffer);
        std::vector<uint64_t> spans;
        {
          nb::gil_scoped_release unlocked;
          spans = bpe::doubtful_for_nfc(text.data(), text.size());
        }
        return owned_array(std::move(spans));
      },
      nb::arg("buffer"));
  m.def(
      "surely_nfc",
      [](nb::handle text) {
        const std::string_view bytes = view_of_str(text, "text");
        const uint8_t *const data = reinterpret_cast<const uint8_t *>(bytes.data());
        return bpe::doubtful_for_nfc(data, bytes.size()).empty();
      },
      nb::arg("text"));
}

using RowOffsets = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The rows that offsets cut a buffer into; they must ascend and stay within it.
size_t row_count(const BufferView &buffer, const RowOffsets &offsets) {
  if (offsets.size() == 0)
    throw nb::value_error("offsets is empty; it has a number more than there are rows");
  for (size_t i = 1; i < offsets.size(); ++i)
    if (offsets.data()[i] < offsets.data()[i - 1])
      throw nb::value_error(("offsets[" + std::to_string(i) + "] = " + std::to_string(offsets.data()[i]) +
                             " is below the one before, " + std::to_string(offsets.data()[i - 1]))
                                .c_str());
  if (offsets.data()[offsets.size() - 1] > buffer.size())
    throw nb::value_error(("offsets end at " + std::to_string(offsets.data()[offsets.size() - 1]) +
                           ", beyond the buffer of " + std::to_string(buffer.size()) + " bytes")
                              .c_str());
  return offsets.size() - 1;
}

void bind_encoder(nb::module_ &m) {
  m.attr("IMAGE_VERSION") = bpe::image_version;
  nb::class_<Codec>(m, "Encoder")
      .def(
          "__init__",
          [](Codec *self, nb::dict entries, nb::object merges, nb::dict special_tokens,
             std::optional<std::string> pattern, bool whole_pretokens, int64_t cache_bytes) {
            const size_t cache_size = cache_size_from(cache_bytes);
            nb::object merge_tuple;
            std::vector<bpe::Vocabulary::Entry> entry_list = entries_from(entries);
            const std::optional<bpe::Vocabulary::Merges> merge_list = merges_from(merges, merge_tuple);
            new (self) Codec(std::move(entry_list), merge_list, special_tokens_from(special_tokens),
                             pattern_from(pattern), whole_pretokens, cache_size);
          },
          nb::arg("entries"), nb::arg("merges").none(), nb::arg("special_tokens"), nb::arg("pattern").none(),
          nb::arg("whole_pretokens"), nb::arg("cache_bytes") = default_cache_bytes)
      .def_static(
          "from_image",
          [](nb::object image, nb::dict special_tokens, const std::optional<std::string> &pattern,
             bool whole_pretokens, int64_t cache_bytes) {
            const BufferView bytes(image);
            const size_t cache_size = cache_size_from(cache_bytes);
            std::vector<bpe::SpecialToken> special_list = special_tokens_from(special_tokens);
            const std::optional<bpe::Pattern> known_pattern = pattern_from(pattern);
            nb::gil_scoped_release unlocked;
            bpe::ImageReader reader(view_of(bytes));
            bpe::Vocabulary vocabulary(reader);
            if (!reader.at_end())
              throw std::invalid_argument("the image goes on behind its end");
            return new Codec(std::move(vocabulary), std::move(special_list), known_pattern, whole_pretokens,
                             cache_size);
          },
          nb::arg("image"), nb::arg("special_tokens"), nb::arg("pattern").none(), nb::arg("whole_pretokens"),
          nb::arg("cache_bytes") = default_cache_bytes, nb::rv_policy::take_ownership)
      .def("image",
           [](const Codec &codec) {
             bpe::ImageWriter image;
             {
               nb::gil_scoped_release unlocked;
               codec.encoder.vocabulary().write(image);
             }
             return nb::bytes(image.bytes.data(), image.bytes.size());
           })
      .def("__len__", [](const Codec &codec) { return codec.encoder.vocabulary().size(); })
      .def_prop_ro("is_rank_file",
                   [](const Codec &codec) { return codec.encoder.vocabulary().is_rank_file(); })
      .def_prop_ro("merge_count", [](const Codec &codec) { return codec.encoder.vocabulary().pair_count(); })
      .def_prop_ro("max_id",
                   [](const Codec &codec) {
                     const bpe::Vocabulary &vocabulary = codec.encoder.vocabulary();
                     return vocabulary.id(static_cast<uint32_t>(vocabulary.size() - 1));
                   })
      .def("entries", &entries_of)
      .def(
          "entry",
          [](const Codec &codec, int64_t id) -> nb::object {
            const std::optional<std::string_view> entry =
                id < 0 ? std::nullopt : codec.encoder.vocabulary().entry(static_cast<uint64_t>(id));
            return entry ? nb::object(nb::bytes(entry->data(), entry->size())) : nb::none();
          },
          nb::arg("id"))
      .def("merge_ids", [](const Codec &codec) { return owned_array(merge_ids_of(codec)); })
      .def(
          "find",
          [](const Codec &codec, nb::handle entry) {
            const bpe::Vocabulary &vocabulary = codec.encoder.vocabulary();
            const uint32_t symbol = vocabulary.find(view_of_bytes(entry, "an entry"));
            return optional_int(symbol == bpe::PairTable::no_symbol ? -1 : int64_t{vocabulary.id(symbol)});
          },
          nb::arg("entry"))
      .def(
          "vocab_json",
          [](const Codec &codec, const std::vector<std::pair<uint32_t, nb::bytes>> &special_keys) {
            std::vector<std::pair<uint32_t, std::string_view>> keys;
            for (const auto &[id, key] : special_keys)
              keys.emplace_back(id, std::string_view(key.c_str(), key.size()));
            const std::string json = bpe::vocab_json(codec.encoder.vocabulary(), keys);
            return nb::bytes(json.data(), json.size());
          },
          nb::arg("special_keys"))
      .def(
          "merges_json",
          [](const Codec &codec, bool as_pairs) {
            const std::string json = bpe::merges_json(codec.encoder.vocabulary(), as_pairs);
            return nb::bytes(json.data(), json.size());
          },
          nb::arg("as_pairs"))
      .def("encode", &encode, nb::arg("text"), nb::arg("special") = true)
      .def(
          "encode_batch",
          [](const Codec &codec, nb::object texts, int64_t threads, bool special) {
            const size_t thread_limit = thread_count(threads);
            // A tuple of our own: nobody can take the strings away while the GIL is released.
            const nb::object items = nb::steal(PySequence_Tuple(texts.ptr()));
            if (!items.is_valid())
              throw nb::python_error();
            std::vector<std::string_view> views;
            views.reserve(nb::len(items));
            for (nb::handle text : nb::borrow<nb::tuple>(items))
              views.push_back(view_of_str(text, "a text"));
            bpe::EncodedRows rows;
            {
              nb::gil_scoped_release unlocked;
              rows = codec.encoder.encode_batch(views, thread_limit, special);
            }
            return owned_rows(std::move(rows));
          },
          nb::arg("texts"), nb::arg("threads"), nb::arg("special") = true)
      .def(
          "encode_documents",
          [](const Codec &codec, nb::object buffer, nb::bytes separator, int64_t threads, bool special,
             std::optional<LentTokens> out) {
            const BufferView text(buffer);
            const size_t thread_limit = thread_count(threads);
            bpe::TokenBuffer lent = out ? lent_tokens(*out, text.size()) : bpe::TokenBuffer();
            bpe::EncodedRows rows;
            {
              nb::gil_scoped_release unlocked;
              rows = codec.encoder.encode_documents(view_of(text), {separator.c_str(), separator.size()},
                                                    thread_limit, special, std::move(lent));
            }
            if (!out)
              return owned_rows(std::move(rows));
            TokenArray tokens(rows.tokens.data(), {rows.tokens.size()}, out->cast());
            return std::pair(std::move(tokens), owned_array(std::move(rows.offsets)));
          },
          nb::arg("buffer"), nb::arg("separator"), nb::arg("threads"), nb::arg("special") = true,
          nb::arg("out").noconvert() = nb::none())
      .def(
          "encode_ragged",
          [](const Codec &codec, nb::object buffer, const RowOffsets &offsets, int64_t threads, bool special,
             std::optional<LentTokens> out) {
            const BufferView text(buffer);
            const size_t rows = row_count(text, offsets);
            const size_t thread_limit = thread_count(threads);
            bpe::TokenBuffer lent = out ? lent_tokens(*out, text.size()) : bpe::TokenBuffer();
            bpe::EncodedRows encoded;
            {
              nb::gil_scoped_release unlocked;
              encoded = codec.encoder.encode_ragged(view_of(text), offsets.data(), rows, thread_limit,
                                                    special, std::move(lent));
            }
            if (!out)
              return owned_rows(std::move(encoded));
            TokenArray tokens(encoded.tokens.data(), {encoded.tokens.size()}, out->cast());
            return std::pair(std::move(tokens), owned_array(std::move(encoded.offsets)));
          },
          nb::arg("buffer"), nb::arg("offsets"), nb::arg("threads"), nb::arg("special") = true,
          nb::arg("out").noconvert() = nb::none())
      .def_static("out_tokens", &bpe::Encoder::out_tokens, nb::arg("buffer_bytes"))
      .def(
          "encode_pretokens",
          [](const Codec &codec, nb::object buffer,
             nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> ends) {
            const BufferView text(buffer);
            bpe::TokenBuffer tokens;
            {
              nb::gil_scoped_release unlocked;
              tokens = codec.encoder.encode_pretokens(view_of(text), ends.data(), ends.size());
            }
            return owned_tokens(std::move(tokens));
          },
          nb::arg("buffer"), nb::arg("ends"))
      .def(
          "decode",
          [](const Codec &codec, nb::handle ids) { return bytes_from(codec.decoder, ids_from(ids)); },
          nb::arg("ids"))
      .def(
          "decode_text",
          [](const Codec &codec, nb::handle ids, const char *errors) {
            const std::vector<int64_t> values = ids_from(ids);
            std::vector<char> room;
            return text_from(codec.decoder, values.data(), values.size(), errors, room);
          },
          nb::arg("ids"), nb::arg("errors"))
      .def(
          "decode_rows",
          [](const Codec &codec,
             nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> tokens,
             nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> offsets,
             const char *errors) { return texts_from(codec.decoder, tokens, offsets, errors); },
          nb::arg("tokens"), nb::arg("offsets"), nb::arg("errors"))
      .def("cache_image",
           [](const Codec &codec) {
             std::string image;
             {
               nb::gil_scoped_release unlocked;
               image = codec.encoder.cache_image();
             }
             return nb::bytes(image.data(), image.size());
           })
      .def(
          "start_from_image",
          [](Codec &codec, nb::object image) {
            auto view = std::make_unique<BufferView>(image);
            {
              nb::gil_scoped_release unlocked;
              codec.encoder.start_from_image(view_of(*view));
            }
            codec.start_image.swap(view);
          },
          nb::arg("image"))
      .def("cache_bytes_used", [](const Codec &codec) { return codec.encoder.cache_bytes_used(); });
}

bpe::SpecialTokens special_tokens_to_cut_at(const std::vector<nb::bytes> &special_tokens) {
  std::vector<bpe::SpecialToken> tokens;
  for (const nb::bytes &token : special_tokens)
    tokens.push_back({std::string(token.c_str(), token.size()), 0});
  return bpe::SpecialTokens(std::move(tokens));
}

using OutBytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Calls row(start, stop) for each document of the buffer.
template <class Row>
void for_each_document(const BufferView &text, std::string_view separator, const Row &row) {
  if (separator.empty())
    throw std::invalid_argument("the separator is empty; documents need at least one byte between them");
  size_t start = 0;
  for (;;) {
    const size_t stop = bpe::find_bytes(text.data(), text.size(), start, separator);
    row(start, stop);
    if (stop == text.size())
      return;
    start = stop + separator.size();
  }
}

void bind_documents(nb::module_ &m) {
  m.def(
      "find_separators",
      [](nb::object buffer, nb::bytes separator) {
        const BufferView text(buffer);
        std::vector<uint64_t> starts;
        {
          nb::gil_scoped_release unlocked;
          for_each_document(text, {separator.c_str(), separator.size()},
                            [&](size_t, size_t stop) { starts.push_back(stop); });
          starts.pop_back(); // the end of the last document
        }
        return owned_array(std::move(starts));
      },
      nb::arg("buffer"), nb::arg("separator"));
  m.def(
      "find_special_tokens",
      [](nb::object buffer, const std::vector<nb::bytes> &special_tokens) {
        const BufferView text(buffer);
        std::vector<bpe::SpecialToken> list;
        for (const nb::bytes &token : special_tokens)
          list.push_back({{token.c_str(), token.size()}, static_cast<uint32_t>(list.size())});
        std::vector<uint64_t> starts;
        std::vector<uint32_t> which;
        {
          nb::gil_scoped_release unlocked;
          const bpe::SpecialTokens tokens(std::move(list));
          bpe::SpecialTokens::Match match{0, 0, 0};
          while ((match = tokens.find(text.data(), text.size(), match.stop)).start < text.size()) {
            starts.push_back(match.start);
            which.push_back(match.value);
          }
        }
        return std::make_pair(owned_array(std::move(starts)), owned_array(std::move(which)));
      },
      nb::arg("buffer"), nb::arg("special_tokens"));
  m.def(
      "hash_documents",
      [](nb::object buffer, nb::bytes separator, uint64_t seed) {
        const BufferView text(buffer);
        std::vector<uint64_t> hashes;
        {
          nb::gil_scoped_release unlocked;
          for_each_document(text, {separator.c_str(), separator.size()}, [&](size_t start, size_t stop) {
            hashes.push_back(bpe::xxh64(text.data() + start, stop - start, seed));
          });
        }
        return owned_array(std::move(hashes));
      },
      nb::arg("buffer"), nb::arg("separator"), nb::arg("seed"));
  m.def(
      "hash_ragged",
      [](nb::object buffer, const RowOffsets &offsets, uint64_t seed) {
        const BufferView text(buffer);
        std::vector<uint64_t> hashes(row_count(text, offsets));
        {
          nb::gil_scoped_release unlocked;
          const uint64_t *const places = offsets.data();
          for (size_t i = 0; i < hashes.size(); ++i)
            hashes[i] = bpe::xxh64(text.data() + places[i], places[i + 1] - places[i], seed);
        }
        return owned_array(std::move(hashes));
      },
      nb::arg("buffer"), nb::arg("offsets"), nb::arg("seed"));
  m.def(
      "rows_with_special_tokens",
      [](nb::object buffer, const RowOffsets &offsets, const std::vector<nb::bytes> &special_tokens) {
        const BufferView text(buffer);
        const size_t rows = row_count(text, offsets);
        const bpe::SpecialTokens tokens = special_tokens_to_cut_at(special_tokens);
        std::vector<uint64_t> found;
        {
          nb::gil_scoped_release unlocked;
          for (size_t i = 0; i < rows; ++i) {
            const size_t stop = offsets.data()[i + 1];
            if (tokens.find(text.data(), stop, offsets.data()[i]).start < stop)
              found.push_back(i);
          }
        }
        return owned_array(std::move(found));
      },
      nb::arg("buffer"), nb::arg("offsets"), nb::arg("special_tokens"));
  m.def(
      "json_texts",
      [](nb::object lines, const std::vector<nb::bytes> &path, OutBytes out, bool replace_surrogates,
         uint64_t max_line_bytes) {
        const BufferView text(lines);
        if (path.empty())
          throw nb::value_error("path is empty; it has a name at least");
        const size_t needed = bpe::json_texts_room(text.size());
        if (out.size() < needed)
          throw nb::value_error(("out has room for " + std::to_string(out.size()) + " bytes; lines of " +
                                 std::to_string(text.size()) + " bytes need " + std::to_string(needed))
                                    .c_str());
        std::vector<std::string> names;
        for (const nb::bytes &name : path)
          names.emplace_back(name.c_str(), name.size());
        bpe::JsonTexts texts;
        {
          nb::gil_scoped_release unlocked;
          texts = bpe::json_texts(text.data(), text.size(), names, replace_surrogates, max_line_bytes,
                                  out.data());
        }
        nb::list bad;
        for (const auto &[start, stop, place, fault] : texts.bad)
          bad.append(nb::make_tuple(start, stop, place, bpe::json_fault_names[static_cast<size_t>(fault)]));
        return nb::make_tuple(owned_array(std::move(texts.offsets)),
                              owned_array(std::move(texts.line_starts)), std::move(bad), texts.line_count,
                              texts.blank_count, texts.replaced);
      },
      nb::arg("lines"), nb::arg("path"), nb::arg("out").noconvert(), nb::arg("replace_surrogates") = false,
      nb::arg("max_line_bytes") = UINT64_MAX);
  m.def(
      "xxh64",
      [](nb::object buffer, uint64_t seed) {
        const BufferView data(buffer);
        nb::gil_scoped_release unlocked;
        return bpe::xxh64(data.data(), data.size(), seed);
      },
      nb::arg("buffer"), nb::arg("seed") = 0);
  nb::class_<bpe::Xxh64>(m, "Xxh64")
      .def(nb::init<uint64_t>(), nb::arg("seed") = 0)
      .def(
          "update",
          [](bpe::Xxh64 &hash, nb::object buffer) {
            const BufferView data(buffer);
            nb::gil_scoped_release unlocked;
            hash.update(data.data(), data.size());
          },
          nb::arg("buffer"))
      .def("digest", &bpe::Xxh64::digest)
      .def("copy", [](const bpe::Xxh64 &hash) { return hash; });
}

// -- training

using Uint64Array = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Checks that ends ascend and cover the buffer, and that each pretoken has a count.
bpe::PretokenView pretoken_view(const BufferView &bytes, const Uint64Array &ends, const Uint64Array &counts) {
  if (ends.shape(0) != counts.shape(0))
    throw nb::value_error(("there are " + std::to_string(ends.shape(0)) + " ends but " +
                           std::to_string(counts.shape(0)) + " counts")
                              .c_str());
  uint64_t start = 0;
  for (size_t i = 0; i < ends.shape(0); ++i) {
    const uint64_t stop = ends.data()[i];
    if (stop < start || stop > bytes.size())
      throw nb::value_error(("ends[" + std::to_string(i) + "] = " + std::to_string(stop) + " is not in [" +
                             std::to_string(start) + ", " + std::to_string(bytes.size()) + "]")
                                .c_str());
    start = stop;
  }
  if (start != bytes.size())
    throw nb::value_error(("the last end is " + std::to_string(start) + " but there are " +
                           std::to_string(bytes.size()) + " bytes")
                              .c_str());
  return {bytes.data(), ends.data(), counts.data(), ends.shape(0)};
}

bpe::TieBreak tie_break_from_name(const std::string &name) {
  if (name == "lexicographic")
    return bpe::TieBreak::lexicographic;
  if (name == "huggingface")
    return bpe::TieBreak::huggingface;
  throw nb::value_error(("unknown tie_break '" + name + "'; known: lexicographic, huggingface").c_str());
}

template <class Get> nb::tuple item_arrays(Get get) {
  bpe::PretokenItems items;
  {
    nb::gil_scoped_release unlocked;
    items = get();
  }
  return nb::make_tuple(owned_array(std::move(items.bytes)), owned_array(std::move(items.ends)),
                        owned_array(std::move(items.counts)));
}

void bind_training(nb::module_ &m) {
  nb::class_<bpe::PretokenCounter>(m, "PretokenCounter")
      .def(
          "__init__",
          [](bpe::PretokenCounter *self, const std::optional<std::string> &pattern) {
            new (self) bpe::PretokenCounter(pattern ? std::optional(bpe::pattern_from_name(*pattern))
                                                    : std::nullopt);
          },
          nb::arg("pattern").none())
      .def(
          "count",
          [](bpe::PretokenCounter &self, nb::object buffer, const std::vector<nb::bytes> &special_tokens,
             unsigned threads, bool in_document) {
            const BufferView text(buffer);
            const bpe::SpecialTokens specials = special_tokens_to_cut_at(special_tokens);
            nb::gil_scoped_release unlocked;
            const uint64_t documents = self.count(text.data(), text.size(), specials, threads, in_document);
            return std::make_pair(documents, in_document);
          },
          nb::arg("buffer"), nb::arg("special_tokens"), nb::arg("threads"), nb::arg("in_document") = false)
      .def(
          "last_cut",
          [](const bpe::PretokenCounter &self, nb::object buffer,
             const std::vector<nb::bytes> &special_tokens) {
            const BufferView text(buffer);
            const bpe::SpecialTokens specials = special_tokens_to_cut_at(special_tokens);
            nb::gil_scoped_release unlocked;
            return self.last_cut(text.data(), text.size(), specials);
          },
          nb::arg("buffer"), nb::arg("special_tokens"))
      .def(
          "add",
          [](bpe::PretokenCounter &self, nb::object pretoken_bytes, const Uint64Array &ends,
             const Uint64Array &counts) {
            const BufferView bytes(pretoken_bytes);
            const bpe::PretokenView pretokens = pretoken_view(bytes, ends, counts);
            nb::gil_scoped_release unlocked;
            uint64_t start = 0;
            for (size_t i = 0; i < pretokens.size; ++i) {
              self.add(pretokens.bytes + start, pretokens.ends[i] - start, pretokens.counts[i]);
              start = pretokens.ends[i];
            }
          },
          nb::arg("pretoken_bytes"), nb::arg("ends"), nb::arg("counts"))
      .def("__len__",
           [](bpe::PretokenCounter &self) {
             nb::gil_scoped_release unlocked;
             return self.size();
           })
      .def("items", [](bpe::PretokenCounter &self) { return item_arrays([&] { return self.items(); }); })
      .def("drain", [](bpe::PretokenCounter &self) { return item_arrays([&] { return self.drain(); }); })
      .def("memory_bytes", [](bpe::PretokenCounter &self) {
        nb::gil_scoped_release unlocked;
        return self.memory_bytes();
      });
  m.def(
      "train_merges",
      [](nb::object pretoken_bytes, const Uint64Array &ends, const Uint64Array &counts, uint64_t new_entries,
         const std::string &tie_break, uint64_t min_frequency, unsigned threads, nb::object progress,
         bool wide, uint64_t first_pairs, uint64_t max_token_bytes) {
        const BufferView bytes(pretoken_bytes);
        const bpe::PretokenView pretokens = pretoken_view(bytes, ends, counts);
        bpe::TrainingOptions options;
        options.new_entries = new_entries;
        options.tie_break = tie_break_from_name(tie_break);
        options.min_frequency = min_frequency;
        options.threads = threads;
        options.wide = wide;
        options.first_pairs = first_pairs;
        options.max_token_bytes = max_token_bytes;
        // Called without a progress too, so that Ctrl-C is seen.
        const bpe::TrainingProgress report = [&](uint64_t entries) {
          nb::gil_scoped_acquire locked;
          if (PyErr_CheckSignals() != 0)
            throw nb::python_error();
          if (!progress.is_none())
            progress(entries);
        };
        std::vector<uint32_t> pairs;
        std::vector<uint64_t> pair_counts;
        {
          nb::gil_scoped_release unlocked;
          const std::vector<bpe::Merge> merges = bpe::train_merges(pretokens, options, report);
          for (const bpe::Merge &merge : merges) {
            pairs.insert(pairs.end(), {merge.left, merge.right});
            pair_counts.push_back(merge.count);
          }
        }
        return nb::make_tuple(owned_array(std::move(pairs)).cast().attr("reshape")(-1, 2),
                              owned_array(std::move(pair_counts)));
      },
      nb::arg("pretoken_bytes"), nb::arg("ends"), nb::arg("counts"), nb::arg("new_entries"),
      nb::arg("tie_break"), nb::arg("min_frequency"), nb::arg("threads"), nb::arg("progress").none(),
      nb::arg("wide") = false, nb::arg("first_pairs") = bpe::TrainingOptions{}.first_pairs,
      nb::arg("max_token_bytes") = 0);
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of bpe; see bpe/_core.pyi.";
  m.attr("__version__") = TOKENMILL_VERSION;
  bind_pretokenize(m);
  bind_encoder(m);
  bind_entry_file(m);
  bind_normalization(m);
  bind_documents(m);
  bind_training(m);
}
