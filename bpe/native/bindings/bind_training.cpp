// Counting pretokens and training, for Python.
#include "bindings/bindings.hpp"
#include "train/pretoken_counts.hpp"
#include "train/trainer.hpp"

#include <algorithm>

namespace bpe::python {

namespace {

using Uint64Array = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Checks that ends ascend and cover the buffer, and that each pretoken has a count.
bpe::PretokenView pretoken_view(const BufferView &bytes, const Uint64Array &ends, const Uint64Array &counts) {
  if (ends.shape(0) != counts.shape(0))
    throw nb::value_error(("there are " + std::to_string(ends.shape(0)) + " ends but " +
                           std::to_string(counts.shape(0)) + " counts")
                              .c_str());
  uint64_t start = 0;
  for (size_t i = 0; i < ends.shape(0); ++i) {
    const uint64_t stop = ends.data()[i];
    if (stop < start || stop > bytes.size())
      throw nb::value_error(("ends[" + std::to_string(i) + "] = " + std::to_string(stop) + " is not in [" +
                             std::to_string(start) + ", " + std::to_string(bytes.size()) + "]")
                                .c_str());
    start = stop;
  }
  if (start != bytes.size())
    throw nb::value_error(("the last end is " + std::to_string(start) + " but there are " +
                           std::to_string(bytes.size()) + " bytes")
                              .c_str());
  return {bytes.data(), ends.data(), counts.data(), ends.shape(0)};
}

bpe::TieBreak tie_break_from_name(const std::string &name) {
  if (name == "lexicographic")
    return bpe::TieBreak::lexicographic;
  if (name == "huggingface")
    return bpe::TieBreak::huggingface;
  throw nb::value_error(("unknown tie_break '" + name + "'; known: lexicographic, huggingface").c_str());
}

template <class Get> nb::tuple item_arrays(Get get) {
  bpe::PretokenItems items;
  {
    nb::gil_scoped_release unlocked;
    items = get();
  }
  return nb::make_tuple(owned_array<uint8_t>(std::move(items.bytes), items.byte_count),
                        owned_array<uint64_t>(std::move(items.ends), items.size),
                        owned_array<uint64_t>(std::move(items.counts), items.size));
}

} // namespace

void bind_training(nb::module_ &m) {
  nb::class_<bpe::PretokenCounter>(m, "PretokenCounter")
      .def(
          "__init__",
          [](bpe::PretokenCounter *self, const std::optional<std::string> &pattern) {
            new (self) bpe::PretokenCounter(pattern ? std::optional(bpe::pattern_from_name(*pattern))
                                                    : std::nullopt);
          },
          nb::arg("pattern").none())
      .def(
          "set_normalizer",
          [](bpe::PretokenCounter &self, std::shared_ptr<bpe::Normalizer> normalizer) {
            self.set_normalizer(std::move(normalizer));
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
      .def("__len__",
           [](bpe::PretokenCounter &self) {
             nb::gil_scoped_release unlocked;
             return self.size();
           })
      .def("items", [](bpe::PretokenCounter &self) { return item_arrays([&] { return self.items(); }); })
      .def("drain", [](bpe::PretokenCounter &self) { return item_arrays([&] { return self.drain(); }); })
      .def("memory_bytes",
           [](bpe::PretokenCounter &self) {
             nb::gil_scoped_release unlocked;
             return self.memory_bytes();
           })
      .def("counted_bytes", [](bpe::PretokenCounter &self) {
        nb::gil_scoped_release unlocked;
        return self.counted_bytes();
      });
  m.def("trim_memory", &bpe::trim_memory);
  m.def("return_large_memory", &bpe::return_large_memory);
  m.def(
      "train_merges",
      [](nb::object pretoken_bytes, const Uint64Array &ends, const Uint64Array &counts, uint64_t new_entries,
         const std::string &tie_break, uint64_t min_frequency, unsigned threads, nb::object progress,
         bool wide, uint64_t first_pairs, uint64_t max_token_bytes, uint64_t known_pairs,
         uint64_t memory_limit) {
        const BufferView bytes(pretoken_bytes);
        const bpe::PretokenView pretokens = pretoken_view(bytes, ends, counts);
        bpe::TrainingOptions options;
        options.new_entries = new_entries;
        options.tie_break = tie_break_from_name(tie_break);
        options.min_frequency = min_frequency;
        options.threads = threads;
        options.wide = wide;
        options.first_pairs = first_pairs;
        options.known_pairs = known_pairs;
        options.max_token_bytes = max_token_bytes;
        options.limit = bpe::MemoryLimit(memory_limit);
        // Called without a progress too, so that Ctrl-C is seen.
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
          const std::vector<bpe::Merge> merges = bpe::train_merges(pretokens, options, report);
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
      nb::arg("pretoken_bytes"), nb::arg("ends"), nb::arg("counts"), nb::arg("new_entries"),
      nb::arg("tie_break"), nb::arg("min_frequency"), nb::arg("threads"), nb::arg("progress").none(),
      nb::arg("wide") = false, nb::arg("first_pairs") = bpe::TrainingOptions{}.first_pairs,
      nb::arg("max_token_bytes") = 0, nb::arg("known_pairs") = 0, nb::arg("memory_limit") = 0);
}

} // namespace bpe::python
