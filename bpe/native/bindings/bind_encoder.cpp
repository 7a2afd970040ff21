// Python bindings of vocabularies and encoding.
#include "bindings/tokenizer_core.hpp"
#include "common/prefetch.hpp"
#include "vocabulary/model_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace bpe::python {

namespace {

constexpr uint32_t max_kept = uint32_t{1} << 18; // the largest vocabularies in use

std::vector<PyObject *> &kept_ints() {
  static std::vector<PyObject *> kept(max_kept);
  return kept;
}

// Return a new reference to the int.
PyObject *int_of(std::vector<PyObject *> &kept, uint32_t id) {
  if (id >= max_kept)
    return PyLong_FromUnsignedLong(id);
  PyObject *&value = kept[id];
  if (!value && !(value = PyLong_FromUnsignedLong(id)))
    return nullptr;
  Py_INCREF(value);
  return value;
}

// Return a list of these IDs. Ints below 2^18 are created once and kept for the process: an ID in a list then
// costs a reference, while a new object would cost more than encoding the text.
nb::list id_list(const uint32_t *ids, size_t size) {
  nb::list out = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(size)));
  if (!out.is_valid())
    throw nb::python_error();
  std::vector<PyObject *> &kept = kept_ints();
  constexpr size_t ahead = 8; // prefetch distance, since the objects are scattered in memory
  for (size_t i = 0; i < size; ++i) {
    if (i + ahead < size && ids[i + ahead] < max_kept)
      prefetch_to_write(kept[ids[i + ahead]]);
    PyObject *const id = int_of(kept, ids[i]);
    if (!id)
      throw nb::python_error();
    NB_LIST_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), id);
  }
  return out;
}

// Return a dict of an encoder's entries, with new bytes objects.
nb::dict entries_of(const TokenizerCore &core) {
  const bpe::Vocabulary &vocabulary = core.encoder.vocabulary();
  nb::dict out;
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol) {
    const std::string_view bytes = vocabulary.bytes(symbol);
    out[nb::int_(vocabulary.id(symbol))] = nb::bytes(bytes.data(), bytes.size());
  }
  return out;
}

// Return uint32[2 * m], the left and right ID of each merge.
std::vector<uint32_t> merge_ids_of(const TokenizerCore &core) {
  const bpe::Vocabulary &vocabulary = core.encoder.vocabulary();
  std::vector<uint32_t> ids = bpe::listed_merges(vocabulary);
  for (uint32_t &symbol : ids)
    symbol = vocabulary.id(symbol);
  return ids;
}

// Size of the pieces of returned text: large compared to a call, small compared to a vocabulary.
constexpr size_t piece_bytes = size_t{1} << 20;

nb::list encode(const TokenizerCore &core, nb::handle text, nb::handle special) {
  const bpe::AddedTokens &tokens = tokens_to_find(core, special);
  const std::string_view bytes = view_of_str(text, "text");
  std::vector<uint32_t> ids;
  if (bytes.size() < gil_release_bytes) {
    core.encoder.encode(bytes, tokens, ids);
  } else {
    nb::gil_scoped_release unlocked;
    core.encoder.encode(bytes, tokens, ids);
  }
  return id_list(ids.data(), ids.size());
}

using LentTokens = nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

bpe::TokenBuffer lent_tokens(const LentTokens &out, size_t text_bytes) {
  const size_t needed = bpe::Encoder::out_tokens(text_bytes);
  if (out.size() < needed)
    throw std::invalid_argument("out has room for " + std::to_string(out.size()) + " tokens; a buffer of " +
                                std::to_string(text_bytes) + " bytes needs " + std::to_string(needed));
  return {out.data(), out.size()};
}

// Return the IDs, in the caller's memory if they were written there.
std::pair<TokenArray, OffsetArray> owned_rows(bpe::EncodedRows &&rows, std::optional<LentTokens> out = {}) {
  TokenArray tokens = rows.tokens.lent() ? TokenArray(rows.tokens.data(), {rows.tokens.size()}, out->cast())
                                         : owned_tokens(std::move(rows.tokens));
  return {std::move(tokens), owned_array(std::move(rows.offsets))};
}

bpe::EncodedRows encode_pretokens(const TokenizerCore &core, nb::object buffer, const RowOffsets &ends,
                                  bool as_rows) {
  const BufferView text(buffer);
  nb::gil_scoped_release unlocked;
  return core.encoder.encode_pretokens(view_of(text), ends.data(), ends.size(), as_rows);
}

// Bind a writer of text in pieces as an iterator of bytes.
template <class Writer> void bind_pieces(nb::module_ &m, const char *name) {
  nb::class_<Writer>(m, name)
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", [](Writer &writer) {
        std::string piece;
        if (!writer.next(piece, piece_bytes))
          throw nb::stop_iteration();
        return nb::bytes(piece.data(), piece.size());
      });
}

} // namespace

void bind_encoder(nb::module_ &m) {
  bind_pieces<bpe::VocabText>(m, "VocabText");
  bind_pieces<bpe::MergesText>(m, "MergesText");
  nb::class_<bpe::AddedTokens>(m, "AddedTokens")
      .def(
          "__init__",
          [](bpe::AddedTokens *self, const Items<nb::tuple> &tokens,
             const Items<std::pair<nb::bytes, uint32_t>> &decoded_only) {
            std::vector<bpe::SpecialToken> contents, raw, normalized;
            for (const auto &[text, id] : decoded_only)
              contents.push_back({std::string(text.c_str(), text.size()), id});
            for (const nb::tuple &item : tokens) {
              if (nb::len(item) != 6)
                throw nb::type_error(
                    "a token is (text, id, normalized text or None, lstrip, rstrip, single_word)");
              bpe::SpecialToken token{std::string(view_of_bytes(item[0], "an added token")),
                                      id_from(item[1], "added token id"), nb::cast<bool>(item[3]),
                                      nb::cast<bool>(item[4]), nb::cast<bool>(item[5])};
              contents.push_back(token);
              if (nb::handle text = item[2]; text.is_none()) {
                raw.push_back(std::move(token));
              } else {
                token.text = view_of_bytes(text, "an added token");
                normalized.push_back(std::move(token));
              }
            }
            new (self) bpe::AddedTokens(std::move(contents), std::move(raw), std::move(normalized));
          },
          nb::arg("tokens"), nb::arg("decoded_only") = nb::list())
      .def(
          "find",
          [](const bpe::AddedTokens &tokens, nb::object buffer, bool normalized) {
            const BufferView text(buffer);
            std::vector<uint64_t> spans;
            std::vector<uint32_t> ids;
            {
              nb::gil_scoped_release unlocked;
              bpe::SpecialTokens::Search search(normalized ? tokens.normalized() : tokens.raw(), text.data(),
                                                text.size());
              for (bpe::SpecialTokens::Match match; (match = search.next()).value != bpe::no_special;) {
                spans.insert(spans.end(), {match.start, match.stop});
                ids.push_back(match.value);
              }
            }
            return std::pair(owned_array(std::move(spans)), owned_array(std::move(ids)));
          },
          nb::arg("buffer"), nb::arg("normalized"));
  nb::class_<TokenizerCore> encoder(m, "TokenizerCore");
  encoder
      .def_static(
          "from_merges",
          [](const nb::ndarray<const uint32_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu> &merges,
             const nb::bytes &byte_order, uint32_t first_id, nb::handle special_tokens,
             const bpe::Automaton *automaton, const Items<nb::tuple> &normalizer,
             const Items<nb::tuple> &changes, uint64_t memory_limit, int64_t cache_bytes) {
            const size_t cache_size = cache_size_from(cache_bytes);
            bpe::FileComponents components{added_tokens_from(special_tokens), shared(automaton),
                                           steps_from(normalizer), steps_from(changes)};
            std::array<uint8_t, 256> order{};
            std::array<bool, 256> seen{};
            if (byte_order.size() != order.size())
              throw std::invalid_argument("byte_order must hold each of the 256 bytes once");
            for (size_t i = 0; i < order.size(); ++i) {
              order[i] = static_cast<uint8_t>(byte_order.c_str()[i]);
              if (std::exchange(seen[order[i]], true))
                throw std::invalid_argument("byte_order must hold each of the 256 bytes once");
            }
            nb::gil_scoped_release unlocked;
            bpe::Vocabulary vocabulary(order, merges.data(), merges.shape(0), first_id,
                                       bpe::MemoryLimit(memory_limit));
            return new TokenizerCore(std::move(vocabulary), std::move(components), false, cache_size);
          },
          nb::arg("merges"), nb::arg("byte_order"), nb::arg("first_id"), nb::arg("special_tokens"),
          nb::arg("automaton").none(), nb::arg("normalizer") = nb::list(), nb::arg("changes") = nb::list(),
          nb::arg("memory_limit") = 0, nb::arg("cache_bytes") = default_cache_bytes,
          nb::rv_policy::take_ownership)
      .def("__len__", [](const TokenizerCore &core) { return core.encoder.vocabulary().size(); })
      .def_prop_ro("is_rank_file",
                   [](const TokenizerCore &core) { return core.encoder.vocabulary().is_rank_file(); })
      .def_prop_ro("merge_count",
                   [](const TokenizerCore &core) { return core.encoder.vocabulary().pair_count(); })
      .def_prop_ro("max_id",
                   [](const TokenizerCore &core) {
                     const bpe::Vocabulary &vocabulary = core.encoder.vocabulary();
                     return vocabulary.size() == 0
                                ? int64_t{-1}
                                : int64_t{vocabulary.id(static_cast<uint32_t>(vocabulary.size() - 1))};
                   })
      .def("entries", &entries_of)
      .def("arrays",
           [](const TokenizerCore &core) {
             const bpe::Vocabulary &vocabulary = core.encoder.vocabulary();
             std::vector<uint32_t> ids;
             std::vector<uint64_t> ends;
             for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol) {
               ids.push_back(vocabulary.id(symbol));
               ends.push_back(vocabulary.start(symbol + 1));
             }
             const std::string_view bytes = vocabulary.all_bytes();
             nb::object merges = nb::none();
             if (!vocabulary.is_rank_file())
               merges = nb::cast(owned_array(bpe::listed_merges(vocabulary)));
             return nb::make_tuple(owned_array(std::move(ids)), owned_array(std::move(ends)),
                                   nb::bytes(bytes.data(), bytes.size()), merges);
           })
      .def("entry_lengths",
           [](const TokenizerCore &core) {
             const bpe::Vocabulary &vocabulary = core.encoder.vocabulary();
             std::vector<uint32_t> lengths;
             for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol) {
               const size_t id = vocabulary.id(symbol);
               lengths.resize(std::max(lengths.size(), id + 1));
               lengths[id] = static_cast<uint32_t>(vocabulary.bytes(symbol).size());
             }
             return owned_array(std::move(lengths));
           })
      .def(
          "entry",
          [](const TokenizerCore &core, int64_t id) -> nb::object {
            const std::optional<std::string_view> entry =
                id < 0 ? std::nullopt : core.encoder.vocabulary().entry(static_cast<uint64_t>(id));
            return entry ? nb::object(nb::bytes(entry->data(), entry->size())) : nb::none();
          },
          nb::arg("id"))
      .def("merge_ids", [](const TokenizerCore &core) { return owned_array(merge_ids_of(core)); })
      .def(
          "find",
          [](const TokenizerCore &core, nb::handle entry) {
            const bpe::Vocabulary &vocabulary = core.encoder.vocabulary();
            const uint32_t symbol = vocabulary.find(view_of_bytes(entry, "an entry"));
            return optional_int(symbol == bpe::PairTable::no_symbol ? -1 : int64_t{vocabulary.id(symbol)});
          },
          nb::arg("entry"))
      .def(
          "vocab_json",
          [](const TokenizerCore &core, const Items<std::pair<uint32_t, nb::bytes>> &special_keys) {
            std::vector<std::pair<uint32_t, std::string>> keys;
            for (const auto &[id, key] : special_keys)
              keys.emplace_back(id, std::string(key.c_str(), key.size()));
            return new bpe::VocabText(core.encoder.vocabulary(), std::move(keys));
          },
          nb::arg("special_keys"), nb::rv_policy::take_ownership, nb::keep_alive<0, 1>())
      .def(
          "merges_json",
          [](const TokenizerCore &core, bool as_pairs) {
            return new bpe::MergesText(core.encoder.vocabulary(), as_pairs);
          },
          nb::arg("as_pairs"), nb::rv_policy::take_ownership, nb::keep_alive<0, 1>())
      .def_prop_ro("automaton",
                   [](const TokenizerCore &core) {
                     return std::const_pointer_cast<bpe::Automaton>(core.encoder.components().automaton);
                   })
      .def_prop_ro("leaves_whole",
                   [](const TokenizerCore &core) { return core.encoder.components().leaves_whole; })
      .def_prop_ro("has_spaces",
                   [](const TokenizerCore &core) {
                     const std::optional<bpe::TextRules> &rules = core.encoder.vocabulary().text_rules();
                     return rules && rules->has_spaces;
                   })
      .def(
          "some_tokens",
          [](const TokenizerCore &core, const std::vector<uint32_t> &ids) {
            return core.encoder.components().all_tokens.only(ids);
          },
          nb::arg("ids"))
      .def("encode", &encode, nb::arg("text"), nb::arg("special") = true)
      .def(
          "encode_batch",
          [](const TokenizerCore &core, nb::object texts, int64_t threads, nb::handle special) {
            const bpe::AddedTokens &tokens = tokens_to_find(core, special);
            const size_t thread_limit = thread_count(threads);
            // A private tuple, so that no other thread can remove the strings while the GIL is released.
            const nb::object items = nb::steal(PySequence_Tuple(texts.ptr()));
            if (!items.is_valid())
              throw nb::python_error();
            std::vector<std::string_view> views;
            views.reserve(nb::len(items));
            for (nb::handle text : nb::borrow<nb::tuple>(items))
              views.push_back(view_of_str(text, "a text"));
            bpe::EncodedRows rows;
            {
              nb::gil_scoped_release unlocked;
              rows = core.encoder.encode_batch(views, thread_limit, tokens);
            }
            return owned_rows(std::move(rows));
          },
          nb::arg("texts"), nb::arg("threads"), nb::arg("special") = true)
      .def(
          "encode_documents",
          [](const TokenizerCore &core, nb::object buffer, nb::bytes separator, int64_t threads,
             nb::handle special, bool check, std::optional<LentTokens> out) {
            const bpe::AddedTokens &tokens_to_cut_at = tokens_to_find(core, special);
            const BufferView text(buffer);
            const size_t thread_limit = thread_count(threads);
            bpe::TokenBuffer lent = out ? lent_tokens(*out, text.size()) : bpe::TokenBuffer();
            bpe::EncodedRows rows;
            {
              nb::gil_scoped_release unlocked;
              rows = core.encoder.encode_documents(view_of(text), {separator.c_str(), separator.size()},
                                                   thread_limit, tokens_to_cut_at, check, std::move(lent));
            }
            return owned_rows(std::move(rows), out);
          },
          nb::arg("buffer"), nb::arg("separator"), nb::arg("threads"), nb::arg("special") = true,
          nb::arg("check") = false, nb::arg("out").noconvert() = nb::none())
      .def(
          "encode_part",
          [](const TokenizerCore &core, nb::object buffer, nb::handle special, unsigned start,
             bool normalize) {
            const bpe::AddedTokens &tokens_to_cut_at = tokens_to_find(core, special);
            const BufferView text(buffer);
            nb::gil_scoped_release unlocked;
            bpe::TokenBuffer tokens = core.encoder.encode_part(
                view_of(text), tokens_to_cut_at, static_cast<bpe::TextStart>(std::min(start, 2u)), normalize);
            nb::gil_scoped_acquire locked;
            return owned_tokens(std::move(tokens));
          },
          nb::arg("buffer"), nb::arg("special"), nb::arg("start"), nb::arg("normalize") = true)
      .def(
          "encode_ragged",
          [](const TokenizerCore &core, nb::object buffer, const RowOffsets &offsets, int64_t threads,
             nb::handle special, std::optional<LentTokens> out) {
            const bpe::AddedTokens &tokens_to_cut_at = tokens_to_find(core, special);
            const BufferView text(buffer);
            const size_t rows = row_count(text, offsets);
            const size_t thread_limit = thread_count(threads);
            bpe::TokenBuffer lent = out ? lent_tokens(*out, text.size()) : bpe::TokenBuffer();
            bpe::EncodedRows encoded;
            {
              nb::gil_scoped_release unlocked;
              encoded = core.encoder.encode_ragged(view_of(text), offsets.data(), rows, thread_limit,
                                                   tokens_to_cut_at, std::move(lent));
            }
            return owned_rows(std::move(encoded), out);
          },
          nb::arg("buffer"), nb::arg("offsets"), nb::arg("threads"), nb::arg("special") = true,
          nb::arg("out").noconvert() = nb::none())
      .def_static("out_tokens", &bpe::Encoder::out_tokens, nb::arg("buffer_bytes"))
      .def(
          "encode_pretokens",
          [](const TokenizerCore &core, nb::object buffer, const RowOffsets &ends) {
            return owned_tokens(std::move(encode_pretokens(core, buffer, ends, false).tokens));
          },
          nb::arg("buffer"), nb::arg("ends"))
      .def(
          "encode_pretoken_rows",
          [](const TokenizerCore &core, nb::object buffer, const RowOffsets &ends) {
            return owned_rows(encode_pretokens(core, buffer, ends, true));
          },
          nb::arg("buffer"), nb::arg("ends"))
      .def("cache_bytes_used", [](const TokenizerCore &core) { return core.encoder.cache_bytes_used(); });
  bind_decoding(encoder);
  m.def(
      "id_list",
      [](nb::object ids, size_t start, size_t stop) {
        const BufferView view(ids);
        if (start > stop || stop > view.size() / sizeof(uint32_t))
          throw nb::value_error("start and stop must ascend within the ids");
        return id_list(reinterpret_cast<const uint32_t *>(view.data()) + start, stop - start);
      },
      nb::arg("ids"), nb::arg("start"), nb::arg("stop"));
  m.def(
      "id_rows",
      [](const nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> &tokens,
         const RowOffsets &offsets) {
        const size_t rows = row_count(tokens.size(), "tokens", offsets);
        nb::list out;
        for (size_t row = 0; row < rows; ++row) {
          const uint64_t start = offsets.data()[row];
          out.append(id_list(tokens.data() + start, offsets.data()[row + 1] - start));
        }
        return out;
      },
      nb::arg("tokens"), nb::arg("offsets"));
}

} // namespace bpe::python
