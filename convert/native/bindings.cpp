// The module convert._core: checks arguments and releases the GIL. convert/_core.pyi is its documentation.
#include "stored_ids.hpp"

#include "bindings/arguments.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string>

namespace convert::python {

namespace {

using bpe::python::row_count;
using bpe::python::RowOffsets;
namespace nb = nanobind;

template <class T> using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require_room(const char *name, size_t room, size_t needed) {
  if (room < needed)
    throw std::invalid_argument(std::string(name) + ": must have room for " + std::to_string(needed) +
                                " items (got " + std::to_string(room) + ")");
}

nb::tuple partition_by_split(const In<uint32_t> &ids, const RowOffsets &offsets, const In<bool> &validation,
                             std::pair<uint64_t, uint64_t> before, const Out<uint32_t> &words,
                             const Out<uint64_t> &starts, std::optional<uint32_t> front,
                             std::optional<uint32_t> back, bool has_mask) {
  const size_t rows = row_count(ids.size(), "ids", offsets);
  if (validation.size() != rows)
    throw std::invalid_argument("validation: must have " + std::to_string(rows) + " items (got " +
                                std::to_string(validation.size()) + ")");
  const EndIds ends{front, back};
  require_room("words", words.size(),
               rows ? offsets.data()[rows] - offsets.data()[0] + rows * ends.count() : 0);
  require_room("starts", starts.size(), rows);
  std::array<SplitStats, 2> stats;
  {
    nb::gil_scoped_release unlocked;
    stats = convert::partition_by_split(ids.data(), offsets.data(), validation.data(), rows, ends, has_mask,
                                        {before.first, before.second}, words.data(), starts.data());
  }
  const auto as_tuple = [](const SplitStats &own) {
    return nb::make_tuple(own.words, own.rows, own.not_trained, own.highest);
  };
  return nb::make_tuple(as_tuple(stats[0]), as_tuple(stats[1]));
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ loops of convert; see convert/_core.pyi.";
  nb::set_leak_warnings(false);
  m.def("partition_by_split", &partition_by_split, nb::arg("ids").noconvert(), nb::arg("offsets").noconvert(),
        nb::arg("validation").noconvert(), nb::arg("before"), nb::arg("words").noconvert(),
        nb::arg("starts").noconvert(), nb::arg("front") = nb::none(), nb::arg("back") = nb::none(),
        nb::arg("has_mask") = false);
}

} // namespace convert::python
