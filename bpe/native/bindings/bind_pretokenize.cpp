// UTF-8, SIMD variants and the quick look for NFC, for Python.
#include "bindings/bindings.hpp"
#include "simd/simd_variants.hpp"
#include "text/nfc.hpp"

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
  m.def("simd_variants", &bpe::simd_variant_names);
  m.def("set_simd_variant", &bpe::choose_simd_variant, nb::arg("name"));
  if (const char *name = std::getenv("BPE_SIMD"); name != nullptr && *name != '\0')
    bpe::choose_simd_variant(name);
}

void bind_normalization(nb::module_ &m) {
  m.def(
      "doubtful_for_nfc",
      [](nb::object buffer) {
        const BufferView text(buffer);
        std::vector<uint64_t> spans;
        {
          nb::gil_scoped_release unlocked;
          spans = bpe::doubtful_for_nfc(text.data(), text.size());
        }
        return owned_array(std::move(spans));
      },
      nb::arg("buffer"));
  m.def(
      "surely_nfc",
      [](nb::handle text) {
        const std::string_view bytes = view_of_str(text, "text");
        const uint8_t *const data = reinterpret_cast<const uint8_t *>(bytes.data());
        return bpe::doubtful_for_nfc(data, bytes.size()).empty();
      },
      nb::arg("text"));
}

} // namespace bpe::python
