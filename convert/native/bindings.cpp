// The module convert._core: ids to be stored; arguments checked, the GIL released. convert/_core.pyi says
// what each call takes and gives.
#include "stored_ids.hpp"

#include "bindings/arguments.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string_view>

namespace convert::python {

namespace {

using bpe::python::row_count;
using bpe::python::RowOffsets;
namespace nb = nanobind;

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
nb::tuple partition_by_split(const Ids &ids, const RowOffsets &offsets, const Marks &marked,
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
  std::array<SplitStats, 2> stats;
  {
    nb::gil_scoped_release unlocked;
    stats = convert::partition_by_split(ids.data(), offsets.data(), marked.data(), rows, ends,
                                        {before.first, before.second}, out.data(), starts.data());
  }
  const auto told = [](const SplitStats &own) {
    return nb::make_tuple(own.ids, own.rows, own.longest, own.highest);
  };
  return nb::make_tuple(told(stats[0]), told(stats[1]));
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ loops of convert; see convert/_core.pyi.";
  nb::set_leak_warnings(false);
  m.def("flag_ids", &flag_ids<NarrowIds>, nb::arg("ids").noconvert(), nb::arg("starts").noconvert(),
        nb::arg("first"), nb::arg("out").noconvert());
  m.def("flag_ids", &flag_ids<Ids>, nb::arg("ids").noconvert(), nb::arg("starts").noconvert(),
        nb::arg("first"), nb::arg("out").noconvert());
  m.def("partition_by_split", &partition_by_split<OutNarrowIds>, nb::arg("ids").noconvert(),
        nb::arg("offsets").noconvert(), nb::arg("marked").noconvert(), nb::arg("before"),
        nb::arg("out").noconvert(), nb::arg("starts").noconvert(), nb::arg("front") = nb::none(),
        nb::arg("back") = nb::none());
  m.def("partition_by_split", &partition_by_split<OutIds>, nb::arg("ids").noconvert(),
        nb::arg("offsets").noconvert(), nb::arg("marked").noconvert(), nb::arg("before"),
        nb::arg("out").noconvert(), nb::arg("starts").noconvert(), nb::arg("front") = nb::none(),
        nb::arg("back") = nb::none());
}

} // namespace convert::python
