// Pretokenizing, UTF-8 and SIMD variants, for Python.
#include "bindings/bindings.hpp"
#include "simd/simd_variants.hpp"

#include <cstdlib>

namespace bpe::python {

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
      "count_pretokens",
      [](nb::object buffer, const std::string &pattern) {
        const BufferView text(buffer);
        require_utf8(text);
        nb::gil_scoped_release unlocked;
        bpe::Pretokenizer pretokenizer(bpe::pattern_from_name(pattern));
        pretokenizer.reset(text.data(), text.size());
        uint64_t count = 0;
        for (bpe::Spans spans = pretokenizer.next(); spans.count > 0; spans = pretokenizer.next())
          count += spans.count;
        return count;
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
  m.def(
      "open_pretoken",
      [](nb::object buffer, const std::string &pattern) {
        const BufferView text(buffer);
        bpe::OpenPretoken open{};
        {
          nb::gil_scoped_release unlocked;
          open = bpe::open_pretoken(bpe::pattern_from_name(pattern), text.data(), text.size());
        }
        return nb::make_tuple(open.start, open.settled, nb::bytes(open.head));
      },
      nb::arg("buffer"), nb::arg("pattern"));
  m.def("simd_variants", &bpe::simd_variant_names);
  m.def("set_simd_variant", &bpe::choose_simd_variant, nb::arg("name"));
  if (const char *name = std::getenv("BPE_SIMD"); name != nullptr && *name != '\0')
    bpe::choose_simd_variant(name);
}

} // namespace bpe::python
