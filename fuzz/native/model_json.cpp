// The scanner of tokenizer.json accepts any bytes: offsets are within the file, entries are in order, and the
// outline of an outline is the outline. Files without a fault build a vocabulary or raise invalid_argument.
#include "input.hpp"

#include "vocabulary/entry_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const fuzz::Exact document({reinterpret_cast<const char *>(data), size});
  bpe::EntryFile file = bpe::EntryFile::from_model_json(document.view());
  const bpe::Fault &fault = file.fault();
  const bool is_utf8 = bpe::validate_utf8(document.data(), document.size()) == document.size();
  fuzz::expect((fault.kind == bpe::Fault::utf8) == !is_utf8, "other text than UTF-8 is a fault");
  fuzz::expect(fault.start <= fault.stop && fault.stop <= document.size(), "offsets are in the document");
  const bpe::EntryList &entries = file.entries();
  fuzz::expect(entries.ids.size() == entries.ends.size() &&
                   std::is_sorted(entries.ends.begin(), entries.ends.end()) &&
                   (entries.ends.empty() || entries.ends.back() <= entries.bytes.size()),
               "entries are concatenated");
  if (fault.kind != bpe::Fault::none)
    return 0;
  for (const uint32_t id : entries.ids)
    fuzz::expect(id <= INT32_MAX, "IDs are at most 2^31 - 1");
  const std::string outline = file.outline(document.view());
  fuzz::expect(bpe::EntryFile::from_model_json(outline).outline(outline) == outline,
               "the outline of an outline is the outline");
  file.spell_bytes();
  fuzz::expect(file.entries().ids.size() == file.entries().ends.size(), "spelling keeps entries");
  return 0;
}
