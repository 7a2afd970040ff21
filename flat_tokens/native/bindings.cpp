// The module flat_tokens._core checks arguments and releases the GIL. flat_tokens/_core.pyi documents it.
#include "cut_rows.hpp"
#include "find_matches.hpp"
#include "loops.hpp"

#include "common/content_hash.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <sstream>
#include <stdexcept>
#include <tuple>

namespace nb = nanobind;

namespace {

// The memory of a contiguous array, valid for the lifetime of this object. Raises TypeError or BufferError.
class Memory {
public:
  Memory(nb::handle array, bool is_output) {
    if (PyObject_GetBuffer(array.ptr(), &view_, is_output ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0)
      throw nb::python_error();
  }
  ~Memory() { PyBuffer_Release(&view_); }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  size_t bytes() const { return static_cast<size_t>(view_.len); }
  template <class T> T *as() const { return static_cast<T *>(view_.buf); }

private:
  Py_buffer view_;
};

// Throws std::invalid_argument with the parts of a message. The text is made only if it is needed.
template <class... Parts> void require(bool holds, const Parts &...parts) {
  if (holds)
    return;
  std::ostringstream text;
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

void require_bytes(const char *name, size_t found, size_t wanted) {
  require(found == wanted, name, " has ", found, " bytes, it must have ", wanted);
}

// Checks that the rows are within the tokens and that the outputs have matching sizes.
template <flat_tokens::Kind kind>
void cut(nb::handle encoded, nb::handle firsts, size_t length, int64_t fill, nb::handle second,
         nb::handle ids, nb::handle is_start) {
  const Memory from(encoded, false), where(firsts, false);
  const Memory to_second(second, true), to_ids(ids, true), to_is_start(is_start, true);
  const size_t token_count = from.bytes() / sizeof(uint32_t), rows = where.bytes() / sizeof(int64_t);
  const int64_t *const first = where.as<const int64_t>();
  require(1 <= length && length <= token_count, "length must be in [1, ", token_count, "], got ", length);
  for (size_t row = 0; row < rows; ++row)
    if (first[row] < 0 || static_cast<size_t>(first[row]) > token_count - length)
      require(false, "firsts[", row, "] is outside the tokens: ", first[row]);
  const size_t places = rows * length;
  const size_t id_bytes = places == 0 ? sizeof(uint32_t) : to_ids.bytes() / places;
  require(id_bytes == 2 || id_bytes == 4 || id_bytes == 8, "an id must have 2, 4 or 8 bytes, got ", id_bytes);
  require(id_bytes > 2 || kind == flat_tokens::Kind::inputs, "a label must have 4 or 8 bytes, got 2");
  require_bytes("is_start", to_is_start.bytes(), places);
  require_bytes("ids", to_ids.bytes(), places * id_bytes);
  require_bytes("inputs or labels", to_second.bytes(), places * id_bytes);
  nb::gil_scoped_release unlocked;
  const auto run = [&]<class Id>(Id *out) {
    flat_tokens::cut_rows(kind, from.as<const uint32_t>(), first, rows, length, static_cast<Id>(fill),
                          to_second.as<Id>(), out, to_is_start.as<uint8_t>());
  };
  if (id_bytes == 2)
    run(to_ids.as<uint16_t>());
  else if (id_bytes == 4)
    run(to_ids.as<uint32_t>());
  else
    run(to_ids.as<uint64_t>());
}

// Rows are short, so the GIL is kept. is_start: None for no flags.
uint32_t decode_ids(nb::handle encoded, nb::handle ids, nb::handle is_start) {
  const Memory from(encoded, false), to(ids, true);
  require_bytes("ids", to.bytes(), from.bytes());
  const size_t count = from.bytes() / sizeof(uint32_t);
  if (is_start.is_none())
    return flat_tokens::decode_ids(from.as<const uint32_t>(), count, to.as<uint32_t>(), nullptr);
  const Memory flags(is_start, true);
  require_bytes("is_start", flags.bytes(), count);
  return flat_tokens::decode_ids(from.as<const uint32_t>(), count, to.as<uint32_t>(), flags.as<uint8_t>());
}

std::tuple<size_t, size_t> next_fit(nb::handle starts, int64_t begin, int64_t max_tokens, nb::handle bounds) {
  const Memory from(starts, false), to(bounds, true);
  const size_t count = from.bytes() / sizeof(int64_t) - (from.bytes() > 0);
  require_bytes("bounds", to.bytes(), count * sizeof(int64_t));
  nb::gil_scoped_release unlocked;
  const flat_tokens::NextFit found =
      flat_tokens::next_fit(from.as<const int64_t>(), count, begin, max_tokens, to.as<int64_t>());
  return {found.packs, found.sequences};
}

size_t find_matches(nb::handle values, size_t shortest, size_t block_tokens, size_t farthest,
                    nb::handle matches, nb::handle table) {
  const Memory from(values, false), to(matches, true), slots(table, true);
  const size_t count = from.bytes() / sizeof(uint32_t);
  require(shortest == 2 || shortest == 3, "shortest must be 2 or 3, got ", shortest);
  require(block_tokens >= 1 && farthest >= 1 && count >> 30 == 0,
          "block_tokens and farthest must be at least 1, and tokens below 2^30");
  require_bytes("table", slots.bytes(), sizeof(uint32_t) << flat_tokens::match_table_bits);
  const size_t most = count / shortest + (count + block_tokens - 1) / block_tokens;
  require(to.bytes() / sizeof(flat_tokens::Match) >= most, "matches must have room for ", most, " matches");
  nb::gil_scoped_release unlocked;
  return flat_tokens::find_matches(from.as<const uint32_t>(), count, shortest, block_tokens, farthest,
                                   to.as<flat_tokens::Match>(), slots.as<uint32_t>());
}

void permute(nb::handle values, uint64_t size, nb::handle keys) {
  const Memory at(values, true), with(keys, false);
  const size_t value_count = at.bytes() / sizeof(uint64_t);
  const size_t key_count = with.bytes() / sizeof(uint64_t);
  require(1 <= size && size <= uint64_t{1} << 62, "size must be in [1, 2^62], got ", size);
  require(key_count > 0 && value_count % key_count == 0, "values must be shared equally among the keys");
  uint64_t *const value = at.as<uint64_t>();
  for (size_t i = 0; i < value_count; ++i)
    if (value[i] >= size)
      require(false, "values[", i, "] must be below ", size);
  const size_t share = value_count / key_count;
  nb::gil_scoped_release unlocked;
  for (size_t i = 0; i < key_count; ++i)
    flat_tokens::permute(value + i * share, share, size, with.as<const uint64_t>()[i]);
}

class Hash {
public:
  void update(nb::handle data) {
    const Memory taken(data, false);
    nb::gil_scoped_release unlocked;
    hash_.update(taken.as<const uint8_t>(), taken.bytes());
  }
  uint64_t digest() const { return hash_.digest(); }

private:
  bpe::Xxh64 hash_{0};
};

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "Native loops of flat_tokens; see flat_tokens/_core.pyi.";
  m.def("cut_rows", &cut<flat_tokens::Kind::inputs>);
  m.def("cut_labels", &cut<flat_tokens::Kind::labels>);
  m.def("decode_ids", &decode_ids, nb::arg(), nb::arg(), nb::arg().none());
  m.def("find_matches", &find_matches);
  m.def("next_fit", &next_fit);
  m.def("permute", &permute);
  nb::class_<Hash>(m, "Xxh64")
      .def(nb::init<>())
      .def("update", &Hash::update, nb::arg("data"))
      .def("digest", &Hash::digest);
}
