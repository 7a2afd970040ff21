// Python bindings of tokenizer files.
#include "bindings/tokenizer_core.hpp"
#include "vocabulary/entry_file.hpp"

namespace bpe::python {

namespace {

using IdArray = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

bpe::EntryFile read(const nb::bytes &data, bpe::EntryFile (*from)(std::string_view)) {
  const std::string_view view{data.c_str(), data.size()};
  nb::gil_scoped_release unlocked;
  return from(view);
}

std::vector<std::string_view> views_of(const Items<nb::bytes> &items) {
  std::vector<std::string_view> views;
  for (const nb::bytes &item : items)
    views.emplace_back(item.c_str(), item.size());
  return views;
}

// Return the entries of a dict of IDs and bytes, and the merges of a list of pairs of bytes, or None.
bpe::EntryFile file_of(const nb::dict &entries, const std::optional<Items<nb::tuple>> &merges) {
  bpe::EntryFile file(merges.has_value());
  for (const auto &[id, bytes] : entries)
    file.add_entry(id_from(id, "entry id"), view_of_bytes(bytes, "an entry"));
  for (size_t i = 0; merges && i < merges->size(); ++i) {
    const nb::tuple &merge = (*merges)[i];
    const std::string where = "merges[" + std::to_string(i) + "]: each part";
    if (merge.size() != 2)
      throw nb::type_error((where + " must be bytes, and there must be two").c_str());
    file.add_merge(view_of_bytes(merge[0], where.c_str()), view_of_bytes(merge[1], where.c_str()));
  }
  return file;
}

std::optional<bpe::TextDecoding> text_decoding_from(const std::optional<TextDecodingTuple> &decoding) {
  if (!decoding)
    return std::nullopt;
  const auto text = [](const nb::bytes &bytes) { return std::string(bytes.c_str(), bytes.size()); };
  const auto &[replaced, stripped, strip_count, special_tokens] = *decoding;
  bpe::TextDecoding made{{}, text(stripped), strip_count, added_tokens_from(special_tokens).contents()};
  for (const auto &[what, by] : replaced)
    made.replaced.emplace_back(text(what), text(by));
  return made;
}

nb::object fault_of(const bpe::EntryFile &file) {
  static constexpr const char *kinds[] = {"",    "json", "utf8",  "vocab", "merges",
                                          "key", "id",   "merge", "line"};
  const bpe::Fault &fault = file.fault();
  if (fault.kind == bpe::Fault::none)
    return nb::none();
  return nb::make_tuple(kinds[fault.kind], fault.index, fault.start, fault.stop, fault.name);
}

} // namespace

void bind_entry_file(nb::module_ &m) {
  using bpe::EntryFile;
  nb::class_<EntryFile>(m, "EntryFile")
      .def_static(
          "read_model_json",
          [](const nb::bytes &document) { return read(document, &EntryFile::from_model_json); },
          nb::arg("document"))
      .def_static(
          "read_rank_file", [](const nb::bytes &data) { return read(data, &EntryFile::from_rank_file); },
          nb::arg("data"))
      .def_static("from_entries", &file_of, nb::arg("entries"), nb::arg("merges").none())
      .def_static(
          "from_arrays",
          [](const IdArray &ids, const RowOffsets &ends, const nb::bytes &bytes,
             const std::optional<IdArray> &merges) {
            bpe::EntryList entries{{ids.data(), ids.data() + ids.size()},
                                   {bytes.c_str(), bytes.size()},
                                   {ends.data(), ends.data() + ends.size()}};
            std::optional<std::vector<uint32_t>> parts;
            if (merges)
              parts.emplace(merges->data(), merges->data() + merges->size());
            return EntryFile::from_arrays(std::move(entries), parts);
          },
          nb::arg("ids"), nb::arg("ends"), nb::arg("bytes"), nb::arg("merges").none())
      .def_prop_ro("fault", &fault_of)
      .def(
          "outline",
          [](const EntryFile &file, const nb::bytes &document) {
            const std::string out = file.outline({document.c_str(), document.size()});
            return nb::bytes(out.data(), out.size());
          },
          nb::arg("document"))
      .def("spell_bytes",
           [](EntryFile &file) -> nb::object {
             const std::optional<size_t> wrong = file.spell_bytes();
             if (!wrong)
               return nb::none();
             const std::string_view part = file.merge_part(*wrong);
             return nb::make_tuple(*wrong / 2, nb::str(part.data(), part.size()));
           })
      .def("__len__", &EntryFile::size)
      .def_prop_ro("texts",
                   [](const EntryFile &file) {
                     nb::dict out;
                     for (const auto &[text, id] : file.texts())
                       out[nb::str(text.data(), text.size())] = id;
                     if (nb::len(out) < file.texts().size())
                       throw std::invalid_argument("a key is given twice");
                     return out;
                   })
      .def_prop_ro("max_id", &EntryFile::max_id)
      .def("has_id", &EntryFile::has_id, nb::arg("id"))
      .def(
          "find",
          [](const EntryFile &file, const Items<nb::bytes> &wanted) {
            nb::list out;
            for (const std::optional<uint32_t> id : file.find(views_of(wanted)))
              out.append(id ? nb::object(nb::int_(*id)) : nb::none());
            return out;
          },
          nb::arg("wanted"))
      .def(
          "used_by_merges",
          [](const EntryFile &file, const Items<nb::bytes> &wanted, size_t prefix_bytes) {
            const std::vector<std::string_view> views = views_of(wanted);
            nb::list out;
            for (const std::string_view entry :
                 file.used_by_merges({views.begin(), views.end()}, prefix_bytes))
              out.append(nb::bytes(entry.data(), entry.size()));
            return out;
          },
          nb::arg("wanted"), nb::arg("prefix_bytes") = 0)
      .def(
          "encoder",
          [](const EntryFile &file, nb::handle special_tokens, const bpe::Automaton *automaton,
             bool ignore_merges, const TextRulesTuple &text_rules, const Items<nb::tuple> &normalizer,
             const Items<nb::tuple> &changes, const std::optional<TextDecodingTuple> &decoding,
             int64_t cache_bytes) {
            const size_t cache_size = cache_size_from(cache_bytes);
            const std::optional<bpe::TextRules> rules = text_rules_from(text_rules);
            bpe::FileComponents components{added_tokens_from(special_tokens), shared(automaton),
                                           steps_from(normalizer), steps_from(changes)};
            const std::optional<bpe::TextDecoding> text_decoding = text_decoding_from(decoding);
            nb::gil_scoped_release unlocked;
            file.require_unique_ids();
            bpe::Vocabulary vocabulary =
                vocabulary_for(components, file.ordinary_entries(components.added_tokens.contents(), rules),
                               file.merges(), ignore_merges, rules);
            auto core = std::make_unique<TokenizerCore>(std::move(vocabulary), std::move(components),
                                                        ignore_merges, cache_size, text_decoding);
            if (core->encoder.vocabulary().pair_count() < file.merge_count())
              file.require_unique_merges();
            return core.release();
          },
          nb::arg("special_tokens"), nb::arg("automaton").none(), nb::arg("ignore_merges"),
          nb::arg("text_rules") = nb::none(), nb::arg("normalizer") = nb::list(),
          nb::arg("changes") = nb::list(), nb::arg("decoding") = nb::none(),
          nb::arg("cache_bytes") = default_cache_bytes, nb::rv_policy::take_ownership);
}

} // namespace bpe::python
