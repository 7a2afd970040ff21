// Normalizers, for Python.
#include "bindings/bindings.hpp"
#include "normalize/normalizer.hpp"

namespace bpe::python {

void bind_normalizer(nb::module_ &m) {
  nb::class_<bpe::Normalizer>(m, "Normalizer")
      .def(
          "__init__",
          [](bpe::Normalizer *self, const std::vector<std::tuple<std::string, nb::bytes, nb::bytes>> &steps) {
            std::vector<bpe::Normalizer::Kind> kinds;
            for (const auto &[name, first, second] : steps)
              kinds.push_back({name, {first.c_str(), first.size()}, {second.c_str(), second.size()}});
            new (self) bpe::Normalizer(kinds);
          },
          nb::arg("steps"))
      .def(
          "apply",
          [](const bpe::Normalizer &normalizer, nb::object buffer, bool at_start) -> nb::object {
            const BufferView view(buffer);
            bpe::Normalizer::Scratch scratch;
            std::string_view normalized;
            {
              nb::gil_scoped_release unlocked;
              normalized = normalizer.apply(view_of(view), scratch, at_start);
            }
            if (normalized.data() == view_of(view).data() && PyBytes_CheckExact(buffer.ptr()))
              return buffer;
            return nb::bytes(normalized.data(), normalized.size());
          },
          nb::arg("buffer"), nb::arg("at_start") = true)
      .def(
          "last_border",
          [](const bpe::Normalizer &normalizer, nb::object buffer, size_t place) {
            const BufferView view(buffer);
            nb::gil_scoped_release unlocked;
            return normalizer.last_border(view_of(view), place);
          },
          nb::arg("buffer"), nb::arg("place"))
      .def(
          "place_before",
          [](const bpe::Normalizer &normalizer, nb::object buffer, size_t place) {
            const BufferView view(buffer);
            return normalizer.place_before(view_of(view), place);
          },
          nb::arg("buffer"), nb::arg("place"));
}

} // namespace bpe::python
