// Python bindings for counting pretokens and training.
#include "bindings/bindings.hpp"
#include "train/letters.hpp"
#include "train/pretoken_counts.hpp"
#include "train/trainer.hpp"

#include <algorithm>
#include <array>

namespace bpe::python {

namespace {

using Uint64Array = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using Int32Array = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using IdArray = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Check that ends ascend and cover the symbols, and that each pretoken has a count.
void check_ends(uint64_t symbols, const Uint64Array &ends, const Uint64Array &counts) {
  if (ends.shape(0) != counts.shape(0))
    throw std::invalid_argument("there are " + std::to_string(ends.shape(0)) + " ends but " +
                                std::to_string(counts.shape(0)) + " counts");
  uint64_t start = 0;
  for (size_t i = 0; i < ends.shape(0); ++i) {
    const uint64_t stop = ends.data()[i];
    if (stop < start || stop > symbols)
      throw std::invalid_argument("ends[" + std::to_string(i) + "] = " + std::to_string(stop) +
                                  " is not in [" + std::to_string(start) + ", " + std::to_string(symbols) +
                                  "]");
    start = stop;
  }
  if (start != symbols)
    throw std::invalid_argument("the last end is " + std::to_string(start) + " but there are " +
                                std::to_string(symbols) + " bytes or ids");
}

bpe::PretokenView pretoken_view(const BufferView &bytes, const Uint64Array &ends, const Uint64Array &counts) {
  check_ends(bytes.size(), ends, counts);
  return {bytes.data(), nullptr, ends.data(), counts.data(), ends.shape(0)};
}

bpe::PretokenView pretoken_view(const IdArray &ids, size_t entries, const Uint64Array &ends,
                                const Uint64Array &counts) {
  check_ends(ids.shape(0), ends, counts);
  for (size_t i = 0; i < ids.shape(0); ++i)
    if (ids.data()[i] >= entries)
      throw std::invalid_argument("id " + std::to_string(ids.data()[i]) + " at " + std::to_string(i) +
                                  " is none of the " + std::to_string(entries) + " entries");
  return {nullptr, ids.data(), ends.data(), counts.data(), ends.shape(0)};
}

std::vector<std::string> strings_from(const Items<nb::bytes> &items) {
  std::vector<std::string> strings;
  for (const nb::bytes &item : items)
    strings.emplace_back(item.c_str(), item.size());
  return strings;
}

std::vector<std::string> bytes_by_value() {
  std::vector<std::string> entries;
  for (int byte = 0; byte < 256; ++byte)
    entries.emplace_back(1, static_cast<char>(byte));
  return entries;
}

void check_bytes_once(const std::vector<std::string> &entries) {
  std::array<bool, 256> seen{};
  for (const std::string &entry : entries)
    if (entry.size() != 1 || std::exchange(seen[static_cast<uint8_t>(entry[0])], true))
      throw std::invalid_argument("entries of pretokens that are bytes must be each of the 256 bytes once");
  if (entries.size() != seen.size())
    throw std::invalid_argument("entries of pretokens that are bytes must be each of the 256 bytes once");
}

bpe::TieBreak tie_break_from_name(const std::string &name) {
  if (name == "lexicographic")
    return bpe::TieBreak::lexicographic;
  if (name == "huggingface")
    return bpe::TieBreak::huggingface;
  throw std::invalid_argument("unknown tie_break '" + name + "'; known: lexicographic, huggingface");
}

} // namespace

void bind_training(nb::module_ &m) {
  nb::class_<bpe::PretokenCounter>(m, "PretokenCounter")
      .def(
          "__init__",
          [](bpe::PretokenCounter *self, const bpe::Automaton *automaton) {
            new (self) bpe::PretokenCounter(shared(automaton));
          },
          nb::arg("automaton").none())
      .def(
          "set_normalizer",
          [](bpe::PretokenCounter &self, const bpe::Normalizer *normalizer) {
            self.set_normalizer(shared(normalizer));
          },
          nb::arg("normalizer").none())
      .def(
          "count",
          [](bpe::PretokenCounter &self, nb::object buffer, const Items<nb::bytes> &special_tokens,
             unsigned threads, bool in_document) {
            const BufferView text(buffer);
            const bpe::SpecialTokens specials = special_tokens_to_cut_at(special_tokens);
            nb::gil_scoped_release unlocked;
            const uint64_t documents = self.count(text.data(), text.size(), specials, threads, in_document);
            return std::make_pair(documents, in_document);
          },
          nb::arg("buffer"), nb::arg("special_tokens"), nb::arg("threads"), nb::arg("in_document") = false)
      .def(
          "count_rows",
          [](bpe::PretokenCounter &self, nb::object buffer, const RowOffsets &offsets, unsigned threads) {
            const BufferView text(buffer);
            const size_t rows = row_count(text, offsets);
            nb::gil_scoped_release unlocked;
            return self.count_rows(text.data(), offsets.data(), rows, threads);
          },
          nb::arg("buffer"), nb::arg("offsets"), nb::arg("threads"))
      .def(
          "last_cut",
          [](const bpe::PretokenCounter &self, nb::object buffer, const Items<nb::bytes> &special_tokens) {
            const BufferView text(buffer);
            const bpe::SpecialTokens specials = special_tokens_to_cut_at(special_tokens);
            nb::gil_scoped_release unlocked;
            return self.last_cut(text.data(), text.size(), specials);
          },
          nb::arg("buffer"), nb::arg("special_tokens"))
      .def(
          "add",
          [](bpe::PretokenCounter &self, nb::object pretoken_bytes, const Uint64Array &ends,
             const Uint64Array &counts) {
            const BufferView bytes(pretoken_bytes);
            const bpe::PretokenView pretokens = pretoken_view(bytes, ends, counts);
            nb::gil_scoped_release unlocked;
            uint64_t start = 0;
            for (size_t i = 0; i < pretokens.size; ++i) {
              self.add(pretokens.bytes + start, pretokens.ends[i] - start, pretokens.counts[i]);
              start = pretokens.ends[i];
            }
          },
          nb::arg("pretoken_bytes"), nb::arg("ends"), nb::arg("counts"))
      .def("drain",
           [](bpe::PretokenCounter &self) {
             bpe::PretokenItems items;
             {
               nb::gil_scoped_release unlocked;
               items = self.drain();
             }
             return nb::make_tuple(owned_array<uint8_t>(std::move(items.bytes), items.byte_count),
                                   owned_array<uint64_t>(std::move(items.ends), items.size),
                                   owned_array<uint64_t>(std::move(items.counts), items.size));
           })
      .def("counted_bytes", [](bpe::PretokenCounter &self) {
        nb::gil_scoped_release unlocked;
        return self.counted_bytes();
      });
  m.def(
      "count_letters",
      [](nb::object pretoken_bytes, const Uint64Array &ends, const Uint64Array &counts, bool of_text) {
        const BufferView bytes(pretoken_bytes);
        const bpe::PretokenView pretokens = pretoken_view(bytes, ends, counts);
        bpe::LetterCounts found;
        {
          nb::gil_scoped_release unlocked;
          found = bpe::count_letters(pretokens, of_text);
        }
        return nb::make_tuple(owned_array(std::move(found.occurrences)),
                              owned_array(std::move(found.places)));
      },
      nb::arg("pretoken_bytes"), nb::arg("ends"), nb::arg("counts"), nb::arg("of_text"));
  m.def(
      "letter_ids",
      [](nb::object pretoken_bytes, const Uint64Array &ends, const Uint64Array &counts,
         const std::vector<Int32Array> &ids) {
        const size_t letters = ids.empty() ? 0 : ids[0].shape(0);
        std::array<const int32_t *, bpe::letter_places> by_place{};
        bool fits = ids.size() == by_place.size() &&
                    (letters == bpe::bytes_there_are || letters == bpe::characters_there_are);
        for (size_t place = 0; fits && place < ids.size(); ++place) {
          fits = ids[place].shape(0) == letters;
          by_place[place] = ids[place].data();
        }
        if (!fits)
          throw std::invalid_argument(
              "there must be an id for each byte or for each character, at four places");
        const BufferView bytes(pretoken_bytes);
        const bpe::PretokenView pretokens = pretoken_view(bytes, ends, counts);
        bpe::LetterIds found;
        {
          nb::gil_scoped_release unlocked;
          found = bpe::letter_ids(pretokens, letters == bpe::characters_there_are, by_place);
        }
        return nb::make_tuple(owned_array(std::move(found.ids)), owned_array(std::move(found.ends)));
      },
      nb::arg("pretoken_bytes"), nb::arg("ends"), nb::arg("counts"), nb::arg("ids"));
  m.def("trim_memory", &bpe::trim_memory);
  m.def("return_large_memory", &bpe::return_large_memory);
  m.def(
      "train_merges",
      [](nb::object pretokens, const Uint64Array &ends, const Uint64Array &counts, uint64_t new_entries,
         const std::string &tie_break, uint64_t min_frequency, unsigned threads, nb::object progress,
         const std::optional<Items<nb::bytes>> &entries, const Items<nb::bytes> &reserved, bool wide,
         uint64_t first_pairs, uint64_t max_token_bytes, uint64_t max_tracked_pairs, uint64_t memory_limit,
         const std::string &prefix, const std::string &suffix, uint64_t max_token_letters,
         bool letters_are_characters) {
        bpe::TrainingOptions options;
        options.new_entries = new_entries;
        options.tie_break = tie_break_from_name(tie_break);
        options.min_frequency = min_frequency;
        options.threads = threads;
        options.wide = wide;
        options.first_pairs = first_pairs;
        options.max_tracked_pairs = max_tracked_pairs;
        options.max_token_bytes = max_token_bytes;
        options.limit = bpe::MemoryLimit(memory_limit);
        options.first_entries = entries ? strings_from(*entries) : bytes_by_value();
        options.reserved = strings_from(reserved);
        options.prefix = prefix;
        options.suffix = suffix;
        options.max_token_letters = max_token_letters;
        options.letters_are_characters = letters_are_characters;
        IdArray ids;
        std::optional<BufferView> bytes;
        bpe::PretokenView view;
        if (nb::try_cast(pretokens, ids, false)) {
          view = pretoken_view(ids, options.first_entries.size(), ends, counts);
        } else {
          check_bytes_once(options.first_entries);
          view = pretoken_view(bytes.emplace(pretokens), ends, counts);
        }
        // Called even without a progress callback, so that Ctrl-C works.
        const bpe::TrainingProgress report = [&](uint64_t entries) {
          nb::gil_scoped_acquire locked;
          if (PyErr_CheckSignals() != 0)
            throw nb::python_error();
          if (!progress.is_none())
            progress(entries);
        };
        std::vector<uint32_t> pairs;
        std::vector<uint64_t> pair_counts;
        {
          nb::gil_scoped_release unlocked;
          const std::vector<bpe::Merge> merges = bpe::train_merges(view, options, report);
          bpe::trim_memory();
          pairs.reserve(2 * merges.size());
          pair_counts.reserve(merges.size());
          for (const bpe::Merge &merge : merges) {
            pairs.insert(pairs.end(), {merge.left, merge.right});
            pair_counts.push_back(merge.count);
          }
        }
        return nb::make_tuple(owned_array(std::move(pairs)).cast().attr("reshape")(-1, 2),
                              owned_array(std::move(pair_counts)));
      },
      nb::arg("pretokens"), nb::arg("ends"), nb::arg("counts"), nb::arg("new_entries"), nb::arg("tie_break"),
      nb::arg("min_frequency"), nb::arg("threads"), nb::arg("progress").none(),
      nb::arg("entries").none() = nb::none(), nb::arg("reserved") = nb::make_tuple(), nb::arg("wide") = false,
      nb::arg("first_pairs") = bpe::TrainingOptions{}.first_pairs, nb::arg("max_token_bytes") = 0,
      nb::arg("max_tracked_pairs") = 0, nb::arg("memory_limit") = 0, nb::arg("prefix") = "",
      nb::arg("suffix") = "", nb::arg("max_token_letters") = 0, nb::arg("letters_are_characters") = false);
}

} // namespace bpe::python
