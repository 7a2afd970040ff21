// The module convert._core: JSON Lines, hashes of documents, ids to be stored; arguments checked, the GIL
// released. convert/_core.pyi says what each call takes and gives.
#include "json_line.hpp"
#include "json_lines.hpp"
#include "stored_ids.hpp"

#include "bindings/arguments.hpp"
#include "common/content_hash.hpp"
#include "text/find_bytes.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string_view>

namespace convert::python {

namespace {

using bpe::python::BufferView;
using bpe::python::Items;
using bpe::python::owned_array;
using bpe::python::row_count;
using bpe::python::RowOffsets;
namespace nb = nanobind;

using OutBytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using Ids = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using NarrowIds = nb::ndarray<const uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutNarrowIds = nb::ndarray<nb::numpy, uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutIds = nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutStarts = nb::ndarray<nb::numpy, uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Marks = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require_room(size_t room, size_t needed) {
  if (room < needed)
    throw std::invalid_argument("out has room for " + std::to_string(room) + " ids, " +
                                std::to_string(needed) + " are given");
}

std::vector<std::string> names_of(const Items<nb::bytes> &path) {
  if (path.size() == 0)
    throw std::invalid_argument("path is empty; it has a name at least");
  std::vector<std::string> names;
  for (const nb::bytes &name : path)
    names.emplace_back(name.c_str(), name.size());
  return names;
}

void require_text_room(size_t room, size_t json_bytes) {
  const size_t needed = json_text_room(json_bytes);
  if (room < needed)
    throw std::invalid_argument("out has room for " + std::to_string(room) + " bytes; lines of " +
                                std::to_string(json_bytes) + " bytes need " + std::to_string(needed));
}

template <class Narrow>
void flag_ids(const Narrow &ids, const RowOffsets &starts, uint64_t first, const OutIds &out) {
  require_room(out.size(), ids.size());
  for (size_t i = 0; i < starts.size(); ++i)
    if (starts.data()[i] < first || starts.data()[i] - first >= ids.size())
      throw std::invalid_argument("starts[" + std::to_string(i) + "] = " + std::to_string(starts.data()[i]) +
                                  " is outside [" + std::to_string(first) + ", " +
                                  std::to_string(first + ids.size()) + ")");
  nb::gil_scoped_release unlocked;
  double_ids(ids.data(), ids.size(), out.data());
  for (size_t i = 0; i < starts.size(); ++i)
    out.data()[starts.data()[i] - first] |= 1;
}

template <class Out>
nb::tuple deal_out(const Ids &ids, const RowOffsets &offsets, const Marks &marked,
                   std::pair<uint64_t, uint64_t> before, const Out &out, const OutStarts &starts,
                   std::optional<uint32_t> front, std::optional<uint32_t> back) {
  const size_t rows = row_count(ids.size(), "ids", offsets);
  if (marked.size() != rows)
    throw std::invalid_argument("marked has " + std::to_string(marked.size()) + " items for " +
                                std::to_string(rows) + " rows");
  const EndIds ends{front, back};
  require_room(out.size(), rows ? offsets.data()[rows] - offsets.data()[0] + rows * ends.count() : 0);
  if (starts.size() < rows)
    throw std::invalid_argument("starts has room for " + std::to_string(starts.size()) + " of " +
                                std::to_string(rows) + " rows");
  std::array<Dealt, 2> dealt;
  {
    nb::gil_scoped_release unlocked;
    dealt = convert::deal_out(ids.data(), offsets.data(), marked.data(), rows, ends,
                              {before.first, before.second}, out.data(), starts.data());
  }
  const auto told = [](const Dealt &own) {
    return nb::make_tuple(own.ids, own.rows, own.longest, own.highest);
  };
  return nb::make_tuple(told(dealt[0]), told(dealt[1]));
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ loops of convert; see convert/_core.pyi.";
  nb::set_leak_warnings(false);
  m.def(
      "hash_documents",
      [](nb::object buffer, nb::bytes separator, uint64_t seed) {
        const BufferView text(buffer);
        std::vector<uint64_t> hashes;
        {
          nb::gil_scoped_release unlocked;
          bpe::for_each_document(text.data(), text.size(), {separator.c_str(), separator.size()},
                                 [&](size_t start, size_t stop) {
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
      "json_texts",
      [](nb::object lines, const Items<nb::bytes> &path, OutBytes out, bool replace_surrogates,
         uint64_t max_line_bytes) {
        const BufferView text(lines);
        const std::vector<std::string> names = names_of(path);
        require_text_room(out.size(), text.size());
        JsonTexts texts;
        {
          nb::gil_scoped_release unlocked;
          texts = json_texts(text.data(), text.size(), names, replace_surrogates, max_line_bytes, out.data());
        }
        nb::list bad;
        for (const auto &[start, stop, place, fault] : texts.bad)
          bad.append(nb::make_tuple(start, stop, place, json_fault_names[static_cast<size_t>(fault)]));
        return nb::make_tuple(owned_array(std::move(texts.offsets)),
                              owned_array(std::move(texts.line_starts)), std::move(bad), texts.line_count,
                              texts.blank_count, texts.replaced);
      },
      nb::arg("lines"), nb::arg("path"), nb::arg("out").noconvert(), nb::arg("replace_surrogates") = false,
      nb::arg("max_line_bytes") = UINT64_MAX);
  nb::class_<JsonLine>(m, "JsonLongLine")
      .def(
          "__init__",
          [](JsonLine *self, const Items<nb::bytes> &path, bool replace_surrogates) {
            new (self) JsonLine(names_of(path), replace_surrogates);
          },
          nb::arg("path"), nb::arg("replace_surrogates") = false)
      .def(
          "feed",
          [](JsonLine &line, nb::object piece, bool final, const OutBytes &out) {
            const BufferView bytes(piece);
            require_text_room(out.size(), bytes.size());
            JsonLine::Fed fed;
            {
              nb::gil_scoped_release unlocked;
              fed = line.feed(bytes.data(), bytes.size(), final, out.data(), bytes.data() + bytes.size());
            }
            return nb::make_tuple(fed.used, fed.text_bytes);
          },
          nb::arg("piece"), nb::arg("final"), nb::arg("out").noconvert())
      .def_prop_ro("fault",
                   [](const JsonLine &line) { return json_fault_names[static_cast<size_t>(line.fault())]; })
      .def_prop_ro("place", &JsonLine::place)
      .def_prop_ro("is_blank", &JsonLine::is_blank)
      .def_prop_ro("replaced", [](const JsonLine &line) { return line.replaced(); });
  m.def(
      "narrow_ids",
      [](const Ids &ids, const OutNarrowIds &out) {
        require_room(out.size(), ids.size());
        nb::gil_scoped_release unlocked;
        return convert::narrow_ids(ids.data(), ids.size(), out.data());
      },
      nb::arg("ids").noconvert(), nb::arg("out").noconvert());
  m.def("flag_ids", &flag_ids<NarrowIds>, nb::arg("ids").noconvert(), nb::arg("starts").noconvert(),
        nb::arg("first"), nb::arg("out").noconvert());
  m.def("flag_ids", &flag_ids<Ids>, nb::arg("ids").noconvert(), nb::arg("starts").noconvert(),
        nb::arg("first"), nb::arg("out").noconvert());
  m.def("deal_out", &deal_out<OutNarrowIds>, nb::arg("ids").noconvert(), nb::arg("offsets").noconvert(),
        nb::arg("marked").noconvert(), nb::arg("before"), nb::arg("out").noconvert(),
        nb::arg("starts").noconvert(), nb::arg("front") = nb::none(), nb::arg("back") = nb::none());
  m.def("deal_out", &deal_out<OutIds>, nb::arg("ids").noconvert(), nb::arg("offsets").noconvert(),
        nb::arg("marked").noconvert(), nb::arg("before"), nb::arg("out").noconvert(),
        nb::arg("starts").noconvert(), nb::arg("front") = nb::none(), nb::arg("back") = nb::none());
}

} // namespace convert::python
