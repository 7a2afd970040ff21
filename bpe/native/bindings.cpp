// The only file that knows Python: checks arguments, views buffers, releases the GIL, owns the results.
// bpe/_core.pyi says what each call takes and gives.
#include "pretokenize.hpp"
#include "utf8.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace {

// A contiguous view of a bytes-like object, held while this lives. Raises TypeError or BufferError as Python does.
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
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of bpe; see bpe/_core.pyi.";
  m.attr("__version__") = TOKENMILL_VERSION;
  bind_pretokenize(m);
  // -- encoding
  // -- training
}
