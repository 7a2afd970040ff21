// Python bindings of the incremental encoder.
#include "bindings/tokenizer_core.hpp"
#include "encode/incremental_encoder.hpp"

#include <algorithm>
#include <utility>

namespace bpe::python {

namespace {

using bpe::IncrementalEncoder;

// Return the IDs, or None if there are none.
nb::object ids_or_none(bpe::TokenBuffer &&ids) {
  return ids.size() == 0 ? nb::none() : nb::cast(owned_tokens(std::move(ids)));
}

nb::object feed(IncrementalEncoder &self, nb::object buffer) {
  const BufferView text(buffer);
  if (text.size() < gil_release_bytes)
    return ids_or_none(self.feed(view_of(text)));
  bpe::TokenBuffer ids;
  {
    nb::gil_scoped_release unlocked;
    ids = self.feed(view_of(text));
  }
  return ids_or_none(std::move(ids));
}

nb::object finish(IncrementalEncoder &self) {
  bpe::TokenBuffer ids;
  {
    nb::gil_scoped_release unlocked;
    ids = self.finish();
  }
  return ids_or_none(std::move(ids));
}

} // namespace

void bind_session(nb::module_ &m) {
  nb::class_<IncrementalEncoder>(m, "Session")
      .def(
          "__init__",
          [](IncrementalEncoder *self, const TokenizerCore &core, nb::handle special, size_t min_bytes) {
            new (self) IncrementalEncoder(core.encoder, tokens_to_find(core, special), min_bytes);
          },
          nb::arg("core"), nb::arg("special"), nb::arg("min_bytes"), nb::keep_alive<1, 2>(),
          nb::keep_alive<1, 3>())
      .def("feed", &feed, nb::arg("buffer"))
      .def("finish", &finish);
}

} // namespace bpe::python
