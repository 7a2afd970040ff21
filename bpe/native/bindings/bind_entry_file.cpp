// Tokenizer files read and written by the core, for Python.
#include "bindings/bind_codec.hpp"
#include "common/image.hpp"
#include "vocabulary/entry_list.hpp"
#include "vocabulary/model_text.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace bpe::python {

namespace {

// What a tokenizer's file holds before it is known which of its entries are special tokens.
struct EntryFile {
  bpe::ModelJson model;
  bool has_merges;
  nb::object document; // of a tokenizer.json

  const bpe::EntryList &entries() const { return model.entries; }
};

nb::object read_entry_file(std::optional<bpe::ModelJson> &&model, bool has_merges, nb::object document) {
  if (!model)
    return nb::none();
  return nb::cast(new EntryFile{std::move(*model), has_merges, std::move(document)},
                  nb::rv_policy::take_ownership);
}

} // namespace

void bind_entry_file(nb::module_ &m) {
  nb::class_<EntryFile>(m, "EntryFile")
      .def_static(
          "read_model_json",
          [](nb::bytes document) {
            std::optional<bpe::ModelJson> model;
            {
              nb::gil_scoped_release unlocked;
              model = bpe::read_model_json({document.c_str(), document.size()});
            }
            return read_entry_file(std::move(model), true, document);
          },
          nb::arg("document"))
      .def_static(
          "read_rank_file",
          [](nb::bytes data) {
            std::optional<bpe::ModelJson> model;
            {
              nb::gil_scoped_release unlocked;
              if (auto entries = bpe::read_rank_file({data.c_str(), data.size()})) {
                model.emplace();
                model->entries = std::move(*entries);
              }
            }
            return read_entry_file(std::move(model), false, nb::none());
          },
          nb::arg("data"))
      .def("outline",
           [](const EntryFile &file) {
             if (file.document.is_none())
               throw nb::value_error("a rank file has no outline");
             const auto document = nb::cast<nb::bytes>(file.document);
             const std::string out = bpe::outline({document.c_str(), document.size()}, file.model);
             return nb::bytes(out.data(), out.size());
           })
      .def("__len__", [](const EntryFile &file) { return file.entries().size() + file.model.texts.size(); })
      .def_prop_ro("texts",
                   [](const EntryFile &file) {
                     nb::dict out;
                     for (const auto &[text, id] : file.model.texts)
                       out[nb::str(text.data(), text.size())] = id;
                     return out;
                   })
      .def_prop_ro("max_id",
                   [](const EntryFile &file) {
                     int64_t highest = -1;
                     for (const uint32_t id : file.entries().ids)
                       highest = std::max<int64_t>(highest, id);
                     for (const auto &text : file.model.texts)
                       highest = std::max<int64_t>(highest, text.second);
                     return highest;
                   })
      .def(
          "has_id",
          [](const EntryFile &file, int64_t id) {
            const std::vector<uint32_t> &ids = file.entries().ids;
            return std::find(ids.begin(), ids.end(), id) != ids.end() ||
                   std::any_of(file.model.texts.begin(), file.model.texts.end(),
                               [&](const auto &text) { return text.second == id; });
          },
          nb::arg("id"))
      .def(
          "find",
          [](const EntryFile &file, const Items<nb::bytes> &wanted) {
            std::unordered_map<std::string_view, std::vector<size_t>> places;
            for (size_t i = 0; i < wanted.size(); ++i)
              places[{wanted[i].c_str(), wanted[i].size()}].push_back(i);
            std::vector<int64_t> found(wanted.size(), -1);
            for (size_t entry = 0; !places.empty() && entry < file.entries().size(); ++entry)
              if (const auto at = places.find(file.entries()[entry]); at != places.end())
                for (const size_t i : at->second)
                  found[i] = file.entries().ids[entry];
            nb::list out;
            for (const int64_t id : found)
              out.append(optional_int(id));
            return out;
          },
          nb::arg("wanted"))
      .def(
          "encoder",
          [](const EntryFile &file, nb::handle special_tokens, const Items<uint32_t> &dropped_ids,
             const std::optional<std::string> &pattern, bool whole_pretokens, int64_t cache_bytes) {
            const size_t cache_size = cache_size_from(cache_bytes);
            bpe::AddedTokens special_list = added_tokens_from(special_tokens);
            const std::optional<bpe::Pattern> known_pattern = pattern_from(pattern);
            const bpe::EntryList &entries = file.entries();
            nb::gil_scoped_release unlocked;
            const std::unordered_set<uint32_t> dropped(dropped_ids.begin(), dropped_ids.end());
            std::vector<bpe::Vocabulary::Entry> kept;
            kept.reserve(entries.size());
            for (size_t i = 0; i < entries.size(); ++i)
              if (dropped.empty() || !dropped.contains(entries.ids[i]))
                kept.push_back({entries.ids[i], entries[i]});
            std::optional<bpe::Vocabulary::Merges> merges;
            if (file.has_merges) {
              merges.emplace();
              merges->reserve(file.model.merge_ends.size() / 2);
              for (size_t i = 0; i < file.model.merge_ends.size(); i += 2)
                merges->emplace_back(file.model.merge_part(i), file.model.merge_part(i + 1));
            }
            auto codec = std::make_unique<Codec>(std::move(kept), merges, std::move(special_list),
                                                 known_pattern, whole_pretokens, cache_size);
            if (merges && codec->encoder.vocabulary().pair_count() < merges->size())
              throw std::invalid_argument("a merge is listed twice");
            return codec.release();
          },
          nb::arg("special_tokens"), nb::arg("dropped_ids"), nb::arg("pattern").none(),
          nb::arg("whole_pretokens"), nb::arg("cache_bytes") = default_cache_bytes,
          nb::rv_policy::take_ownership);
}

} // namespace bpe::python
