// Documents between separators match a search with std::string_view.
//
// planted: native/text/find_bytes.cpp: `== last && matches(place))` -> `== last)`
#include "fuzz_input.hpp"

#include "text/find_bytes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const std::string separator(input.bytes(1 + input.below(20)));
  const size_t from = input.below(512);
  const std::string_view head = input.bytes(6);
  fuzz::Input how(bpe::bytes_of(head), head.size());
  const fuzz::Exact text(fuzz::stretched(how, std::string(input.rest()), 300));
  if (separator.empty())
    return 0;
  const size_t start = std::min(from, text.size());
  fuzz::expect(bpe::find_bytes(text.data(), text.size(), start, separator) ==
                   std::min(text.view().find(separator, start), text.size()),
               "find_bytes finds the first place");
  size_t at = 0;
  bpe::for_each_document(text.data(), text.size(), separator, [&](size_t first, size_t stop) {
    fuzz::expect(first == at && stop == std::min(text.view().find(separator, at), text.size()),
                 "documents lie between separators");
    at = stop + separator.size();
  });
  fuzz::expect(at == text.size() + separator.size(), "the last document ends with the text");
  return 0;
}
