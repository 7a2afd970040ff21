// The module tokenmill.inputs._core: UTF-8, separators, special tokens, hashes and JSON Lines. Calls
// check their arguments and release the GIL around loops; tokenmill/inputs/_core.pyi describes each.
#include "json_lines.hpp"

#include "bindings/arguments.hpp"
#include "common/content_hash.hpp"
#include "simd/simd_variants.hpp"
#include "text/find_bytes.hpp"
#include "text/special_tokens.hpp"
#include "text/utf8.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <stdexcept>

namespace corpus::python {

namespace {

using bpe::python::BufferView;
using bpe::python::Items;
using bpe::python::owned_array;
using bpe::python::row_count;
using bpe::python::RowOffsets;
namespace nb = nanobind;

using OutBytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The value of each token is its index in the list.
bpe::SpecialTokens special_tokens_from(const Items<nb::bytes> &special_tokens) {
  std::vector<bpe::SpecialToken> list;
  for (const nb::bytes &token : special_tokens)
    list.push_back({{token.c_str(), token.size()}, static_cast<uint32_t>(list.size())});
  return bpe::SpecialTokens(std::move(list));
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "The native loops of tokenmill.inputs; see _core.pyi.";
  nb::set_leak_warnings(false); // modules keep objects until the process ends
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
      "find_separators",
      [](nb::object buffer, nb::bytes separator) {
        const BufferView text(buffer);
        std::vector<uint64_t> starts;
        {
          nb::gil_scoped_release unlocked;
          bpe::for_each_document(text.data(), text.size(), {separator.c_str(), separator.size()},
                                 [&](size_t, size_t stop) { starts.push_back(stop); });
          starts.pop_back(); // the end of the last document
        }
        return owned_array(std::move(starts));
      },
      nb::arg("buffer"), nb::arg("separator"));
  m.def(
      "find_special_tokens",
      [](nb::object buffer, const Items<nb::bytes> &special_tokens) {
        const BufferView text(buffer);
        const bpe::SpecialTokens tokens = special_tokens_from(special_tokens);
        std::vector<uint64_t> starts;
        std::vector<uint32_t> which;
        {
          nb::gil_scoped_release unlocked;
          bpe::SpecialTokens::Search search(tokens, text.data(), text.size());
          for (bpe::SpecialTokens::Match match; (match = search.next()).start < text.size();) {
            starts.push_back(match.start);
            which.push_back(match.value);
          }
        }
        return std::make_pair(owned_array(std::move(starts)), owned_array(std::move(which)));
      },
      nb::arg("buffer"), nb::arg("special_tokens"));
  m.def(
      "rows_with_special_tokens",
      [](nb::object buffer, const RowOffsets &offsets, const Items<nb::bytes> &special_tokens) {
        const BufferView text(buffer);
        const size_t rows = row_count(text, offsets);
        const bpe::SpecialTokens tokens = special_tokens_from(special_tokens);
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
      .def("digest", &bpe::Xxh64::digest);
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
      [](nb::object lines, const Items<nb::bytes> &path, OutBytes out, uint64_t max_line_bytes) {
        const BufferView text(lines);
        if (path.size() == 0 || out.size() < text.size())
          throw std::invalid_argument("path must have a name, and out must have room for the lines");
        std::vector<std::string> names;
        for (const nb::bytes &name : path)
          names.emplace_back(name.c_str(), name.size());
        JsonTexts texts;
        {
          nb::gil_scoped_release unlocked;
          texts = json_texts(text.data(), text.size(), names, max_line_bytes, out.data());
        }
        return nb::make_tuple(owned_array(std::move(texts.offsets)),
                              owned_array(std::move(texts.line_starts)),
                              owned_array(std::move(texts.line_numbers)), owned_array(std::move(texts.left)),
                              texts.line_count, texts.blank_count);
      },
      nb::arg("lines"), nb::arg("path"), nb::arg("out").noconvert(), nb::arg("max_line_bytes") = UINT64_MAX);
  m.def("simd_variants", &bpe::simd_variant_names);
  m.def("set_simd_variant", &bpe::choose_simd_variant, nb::arg("name"));
  if (const char *name = std::getenv("BPE_SIMD"); name != nullptr && *name != '\0')
    bpe::choose_simd_variant(name);

  // nanobind ends the process if its table of objects cannot grow. It grows here, before any work, to more
  // than a process ever needs. All modules share the table.
  nb::list objects;
  for (int i = 0; i < 256; ++i)
    objects.append(m.attr("Xxh64")());
}

} // namespace corpus::python
