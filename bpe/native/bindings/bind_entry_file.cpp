// Tokenizer files read and written by the core, for Python.
#include "bindings/tokenizer_core.hpp"
#include "text/utf8.hpp"
#include "vocabulary/entry_list.hpp"
#include "vocabulary/model_text.hpp"

#include <algorithm>
#include <functional>
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

// Those of the texts that are a part or the product of a merge, which takes `prefix` bytes from its right
// part.
std::unordered_set<std::string_view> used_by_merges(const bpe::ModelJson &model,
                                                    const std::unordered_set<std::string_view> &texts,
                                                    size_t prefix) {
  std::unordered_set<std::string_view> used;
  const auto bit_of = [](std::string_view text) { return uint64_t{1} << std::min<size_t>(text.size(), 63); };
  uint64_t sizes = 0; // which most entries do not have
  for (const std::string_view text : texts)
    sizes |= bit_of(text);
  const auto look_at = [&](std::string_view entry) {
    if (sizes & bit_of(entry))
      if (const auto found = texts.find(entry); found != texts.end())
        used.insert(*found);
  };
  std::string product;
  for (size_t i = 0; !texts.empty() && i < model.merge_ends.size(); i += 2) {
    look_at(model.merge_part(i));
    look_at(model.merge_part(i + 1));
    if (prefix > 0) {
      const std::string_view right = model.merge_part(i + 1);
      look_at(product.assign(model.merge_part(i)).append(right.substr(std::min(prefix, right.size()))));
    } else {
      look_at(model.product(i / 2));
    }
  }
  return used;
}

// Whether merging may begin with the entry: one character, with prefix and suffix perhaps, or a byte's.
bool begins(const bpe::TextRules &rules, std::string_view entry) {
  const auto is_one = [&](std::string_view text) {
    const auto *const bytes = reinterpret_cast<const uint8_t *>(text.data());
    return text.size() <= 1 ||
           (!rules.byte_level && bpe::read_char(bytes, bytes + text.size()).length == text.size());
  };
  const auto is_one_with_suffix = [&](std::string_view text) {
    return is_one(text) ||
           (text.ends_with(rules.suffix) && is_one(text.substr(0, text.size() - rules.suffix.size())));
  };
  return is_one_with_suffix(entry) ||
         (entry.starts_with(rules.prefix) && is_one_with_suffix(entry.substr(rules.prefix.size()))) ||
         (rules.byte_fallback && entry.size() == 6 && entry.starts_with("<0x"));
}

void require_own_ids(const bpe::EntryList &entries) {
  if (std::adjacent_find(entries.ids.begin(), entries.ids.end(), std::greater_equal<>()) == entries.ids.end())
    return;
  std::unordered_map<uint32_t, size_t> owners;
  for (size_t i = 0; i < entries.size(); ++i)
    if (const auto [owner, is_new] = owners.try_emplace(entries.ids[i], i); !is_new)
      throw std::invalid_argument("id " + std::to_string(entries.ids[i]) + " is that of both " +
                                  bpe::quoted(entries[owner->second]) + " and " + bpe::quoted(entries[i]) +
                                  "; ids must be unique");
}

void require_own_merges(const bpe::ModelJson &model) {
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < model.merge_ends.size(); i += 2) {
    // No entry's length is needed to tell two pairs of the same bytes apart but the left one's.
    std::string pair = std::to_string(model.merge_part(i).size()) + ":";
    pair += model.product(i / 2);
    if (const auto [first, is_new] = places.try_emplace(std::move(pair), i / 2); !is_new)
      throw std::invalid_argument("merges[" + std::to_string(i / 2) + "] repeats merges[" +
                                  std::to_string(first->second) + "]");
  }
}

} // namespace

void bind_entry_file(nb::module_ &m) {
  nb::class_<EntryFile>(m, "EntryFile")
      .def_static(
          "read_model_json",
          [](nb::bytes document, const std::string &spelling) {
            std::optional<bpe::ModelJson> model;
            {
              nb::gil_scoped_release unlocked;
              model = bpe::read_model_json({document.c_str(), document.size()},
                                           spelling == "text"     ? bpe::Spelling::text
                                           : spelling == "unread" ? bpe::Spelling::unread
                                                                  : bpe::Spelling::byte_alphabet);
            }
            if (!model)
              return nb::object(nb::none());
            return nb::cast(new EntryFile{std::move(*model), true, document}, nb::rv_policy::take_ownership);
          },
          nb::arg("document"), nb::arg("spelling"))
      .def_static(
          "read_rank_file",
          [](nb::bytes data) {
            bpe::ModelJson model{};
            {
              nb::gil_scoped_release unlocked;
              std::optional<uint32_t> empty_rank;
              model.entries = bpe::read_rank_file({data.c_str(), data.size()}, model.fault, empty_rank);
              if (empty_rank)
                model.texts.emplace_back("", *empty_rank);
            }
            return new EntryFile{std::move(model), false, nb::none()};
          },
          nb::arg("data"), nb::rv_policy::take_ownership)
      .def_prop_ro("fault",
                   [](const EntryFile &file) -> nb::object {
                     static constexpr const char *names[] = {"", "vocab", "merges", "line"};
                     const bpe::Fault &fault = file.model.fault;
                     if (fault.place == bpe::Fault::none)
                       return nb::none();
                     return nb::make_tuple(names[fault.place], fault.index == bpe::Fault::whole
                                                                   ? nb::none()
                                                                   : nb::object(nb::int_(fault.index)));
                   })
      .def("outline",
           [](const EntryFile &file) {
             if (file.document.is_none())
               throw std::invalid_argument("a rank file has no outline");
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
                     if (nb::len(out) < file.model.texts.size())
                       throw std::invalid_argument("a key is given twice");
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
          "used_by_merges",
          [](const EntryFile &file, const Items<nb::bytes> &wanted, size_t prefix_bytes) {
            std::unordered_set<std::string_view> texts;
            for (const nb::bytes &text : wanted)
              texts.insert({text.c_str(), text.size()});
            nb::list out;
            for (const std::string_view entry : used_by_merges(file.model, texts, prefix_bytes))
              out.append(nb::bytes(entry.data(), entry.size()));
            return out;
          },
          nb::arg("wanted"), nb::arg("prefix_bytes") = 0)
      .def(
          "encoder",
          [](const EntryFile &file, nb::handle special_tokens, const bpe::Automaton *automaton,
             bool ignore_merges, const TextRulesTuple &text_rules, int64_t cache_bytes) {
            const std::optional<bpe::TextRules> rules = text_rules_from(text_rules);
            const size_t cache_size = cache_size_from(cache_bytes);
            bpe::AddedTokens special_list = added_tokens_from(special_tokens);
            const bpe::EntryList &entries = file.entries();
            std::shared_ptr<const bpe::Automaton> tables = shared(automaton);
            nb::gil_scoped_release unlocked;
            require_own_ids(entries);
            // A special token is no entry for the text between special tokens, unless that needs it.
            std::unordered_map<uint32_t, std::string_view> special_texts;
            std::unordered_set<std::string_view> texts;
            for (const bpe::SpecialToken &token : special_list.contents()) {
              special_texts.emplace(token.value, token.text);
              texts.insert(token.text);
            }
            const std::unordered_set<std::string_view> used =
                used_by_merges(file.model, texts, rules ? rules->prefix.size() : 0);
            std::vector<bpe::Vocabulary::Entry> kept;
            kept.reserve(entries.size());
            for (size_t i = 0; i < entries.size(); ++i) {
              const auto special = special_texts.find(entries.ids[i]);
              if (!file.has_merges || special == special_texts.end() ||
                  (special->second == entries[i] &&
                   ((rules ? begins(*rules, entries[i]) : entries[i].size() == 1) ||
                    used.contains(entries[i]))))
                kept.push_back({entries.ids[i], entries[i]});
            }
            std::optional<bpe::Vocabulary::Merges> merges;
            if (file.has_merges) {
              merges.emplace();
              merges->reserve(file.model.merge_ends.size() / 2);
              for (size_t i = 0; i < file.model.merge_ends.size(); i += 2)
                merges->emplace_back(file.model.merge_part(i), file.model.merge_part(i + 1));
            }
            auto core = std::make_unique<TokenizerCore>(std::move(kept), merges, std::move(special_list),
                                                        std::move(tables), ignore_merges, cache_size, rules);
            if (merges && core->encoder.vocabulary().pair_count() < merges->size())
              require_own_merges(file.model);
            return core.release();
          },
          nb::arg("special_tokens"), nb::arg("automaton").none(), nb::arg("ignore_merges"),
          nb::arg("text_rules") = nb::none(), nb::arg("cache_bytes") = default_cache_bytes,
          nb::rv_policy::take_ownership);
}

} // namespace bpe::python
