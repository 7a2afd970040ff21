// The only file that knows Python: checks arguments, views buffers, releases the GIL, owns the results.
// bpe/_core.pyi says what each call takes and gives.
#include "pretoken_counts.hpp"
#include "pretokenize.hpp"
#include "trainer.hpp"
#include "simd_variants.hpp"
#include "utf8.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace {

// A contiguous view of a bytes-like object, held while this lives. Raises TypeError or BufferError as Python
// does.
class BufferView {
public:
  explicit BufferView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0)
      throw nb::python_error();
  }
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView &) = delete;
  BufferView &operator=(const BufferView &) = delete;
  const uint8_t *data() const { return static_cast<const uint8_t *>(view_.buf); }
  size_t size() const { return static_cast<size_t>(view_.len); }

private:
  Py_buffer view_;
};

// A numpy array that takes over the vector's memory.
template <class T> nb::ndarray<nb::numpy, T, nb::ndim<1>> owned_array(std::vector<T> &&values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T *data = owner->data();
  const size_t size = owner->size();
  nb::capsule free(owner.get(), [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
  owner.release();
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, free);
}

// -- pretokenizing

void require_utf8(const BufferView &text) {
  const size_t bad = bpe::validate_utf8(text.data(), text.size());
  if (bad < text.size())
    throw nb::value_error(("the text is not valid UTF-8 at byte " + std::to_string(bad)).c_str());
}

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
  m.def(
      "pretokenize",
      [](nb::object buffer, const std::string &pattern) {
        const BufferView text(buffer);
        require_utf8(text);
        std::vector<uint64_t> ends;
        {
          nb::gil_scoped_release unlocked;
          bpe::Pretokenizer pretokenizer(bpe::pattern_from_name(pattern));
          pretokenizer.reset(text.data(), text.size());
          for (bpe::Spans spans = pretokenizer.next(); spans.count > 0; spans = pretokenizer.next()) {
            const uint64_t origin = static_cast<uint64_t>(spans.origin - text.data());
            for (size_t i = 0; i < spans.count; ++i)
              ends.push_back(origin + spans.ends[i]);
          }
        }
        return owned_array(std::move(ends));
      },
      nb::arg("buffer"), nb::arg("pattern"));
  m.def(
      "last_safe_cut",
      [](nb::object buffer, const std::string &pattern) {
        const BufferView text(buffer);
        nb::gil_scoped_release unlocked;
        return bpe::last_safe_cut(bpe::pattern_from_name(pattern), text.data(), text.size());
      },
      nb::arg("buffer"), nb::arg("pattern"));
  m.def("simd_variants", &bpe::simd_variant_names);
  m.def("set_simd_variant", &bpe::choose_simd_variant, nb::arg("name"));
  if (const char *name = std::getenv("BPE_SIMD"); name != nullptr && *name != '\0')
    bpe::choose_simd_variant(name);
}

// -- training

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

bpe::SpecialTokens special_tokens_to_cut_at(const std::vector<nb::bytes> &special_tokens) {
  std::vector<std::string> tokens;
  for (const nb::bytes &token : special_tokens)
    tokens.emplace_back(token.c_str(), token.size());
  return bpe::SpecialTokens(std::move(tokens));
}

bpe::TieBreak tie_break_from_name(const std::string &name) {
  if (name == "lexicographic")
    return bpe::TieBreak::lexicographic;
  if (name == "huggingface")
    return bpe::TieBreak::huggingface;
  throw nb::value_error(("unknown tie_break '" + name + "'; known: lexicographic, huggingface").c_str());
}

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
          "count",
          [](bpe::PretokenCounter &self, nb::object buffer, const std::vector<nb::bytes> &special_tokens,
             unsigned threads) {
            const BufferView text(buffer);
            const bpe::SpecialTokens specials = special_tokens_to_cut_at(special_tokens);
            nb::gil_scoped_release unlocked;
            self.count(text.data(), text.size(), specials, threads);
          },
          nb::arg("buffer"), nb::arg("special_tokens"), nb::arg("threads"))
      .def(
          "last_cut",
          [](const bpe::PretokenCounter &self, nb::object buffer,
             const std::vector<nb::bytes> &special_tokens) {
            const BufferView text(buffer);
            const bpe::SpecialTokens specials = special_tokens_to_cut_at(special_tokens);
            size_t longest = 0;
            for (const nb::bytes &token : special_tokens)
              longest = std::max(longest, token.size());
            nb::gil_scoped_release unlocked;
            return self.last_cut(text.data(), text.size(), specials, longest);
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
      .def("items", [](bpe::PretokenCounter &self) {
        bpe::PretokenItems items;
        {
          nb::gil_scoped_release unlocked;
          items = self.items();
        }
        return nb::make_tuple(owned_array(std::move(items.bytes)), owned_array(std::move(items.ends)),
                              owned_array(std::move(items.counts)));
      });
  m.def(
      "train_merges",
      [](nb::object pretoken_bytes, const Uint64Array &ends, const Uint64Array &counts, uint64_t new_entries,
         const std::string &tie_break, uint64_t min_frequency, unsigned threads, nb::object progress,
         bool wide) {
        const BufferView bytes(pretoken_bytes);
        const bpe::PretokenView pretokens = pretoken_view(bytes, ends, counts);
        bpe::TrainingOptions options;
        options.new_entries = new_entries;
        options.tie_break = tie_break_from_name(tie_break);
        options.min_frequency = min_frequency;
        options.threads = threads;
        options.wide = wide;
        // Called without a progress too, so that Ctrl-C is seen.
        const bpe::TrainingProgress report = [&](uint64_t entries) {
          nb::gil_scoped_acquire locked;
          if (PyErr_CheckSignals() != 0)
            throw nb::python_error();
          if (!progress.is_none())
            progress(entries);
        };
        std::vector<uint32_t> pairs, products;
        std::vector<uint64_t> pair_counts;
        {
          nb::gil_scoped_release unlocked;
          const std::vector<bpe::Merge> merges = bpe::train_merges(pretokens, options, report);
          for (const bpe::Merge &merge : merges) {
            pairs.insert(pairs.end(), {merge.left, merge.right});
            products.push_back(256 + static_cast<uint32_t>(products.size()));
            pair_counts.push_back(merge.count);
          }
        }
        return nb::make_tuple(owned_array(std::move(pairs)).cast().attr("reshape")(-1, 2),
                              owned_array(std::move(products)), owned_array(std::move(pair_counts)));
      },
      nb::arg("pretoken_bytes"), nb::arg("ends"), nb::arg("counts"), nb::arg("new_entries"),
      nb::arg("tie_break"), nb::arg("min_frequency"), nb::arg("threads"), nb::arg("progress").none(),
      nb::arg("wide") = false);
}

} // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of bpe; see bpe/_core.pyi.";
  m.attr("__version__") = TOKENMILL_VERSION;
  bind_pretokenize(m);
  // -- encoding
  bind_training(m);
}
