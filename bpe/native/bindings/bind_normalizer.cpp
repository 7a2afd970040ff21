// Python bindings of normalizers.
#include "bindings/bindings.hpp"
#include "normalize/normalizer.hpp"

#include <algorithm>

namespace bpe::python {

std::vector<bpe::Normalizer::Kind> steps_from(const Items<nb::tuple> &steps) {
  std::vector<bpe::Normalizer::Kind> kinds;
  for (const nb::tuple &step : steps) {
    if (step.size() != 3)
      throw nb::type_error("a step must be (kind, first, second)");
    const nb::object name = step[0], first = step[1], second = step[2];
    std::string kind(view_of_str(name, "a kind")), last(view_of_bytes(second, "a second text"));
    if (nb::isinstance<Automaton>(first))
      kinds.push_back({std::move(kind), {}, std::move(last), shared(nb::cast<const Automaton *>(first))});
    else
      kinds.push_back({std::move(kind), std::string(view_of_bytes(first, "a first text")), std::move(last)});
  }
  return kinds;
}

void bind_normalizer(nb::module_ &m) {
  nb::class_<bpe::Normalizer>(m, "Normalizer")
      .def(
          "__init__",
          [](bpe::Normalizer *self, const Items<nb::tuple> &steps) {
            new (self) bpe::Normalizer(steps_from(steps));
          },
          nb::arg("steps"))
      .def(
          "apply",
          [](const bpe::Normalizer &normalizer, nb::object buffer, unsigned start) -> nb::object {
            const BufferView view(buffer);
            bpe::Normalizer::Scratch scratch;
            std::string_view normalized;
            {
              nb::gil_scoped_release unlocked;
              normalized =
                  normalizer.apply(view_of(view), scratch, static_cast<TextStart>(std::min(start, 2u)));
            }
            if (normalized.data() == view_of(view).data() && PyBytes_CheckExact(buffer.ptr()))
              return buffer;
            return nb::bytes(normalized.data(), normalized.size());
          },
          nb::arg("buffer"), nb::arg("start") = 1)
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
