// Documents in a buffer: separators, special tokens, the content hash; for Python.
#include "bindings/bindings.hpp"
#include "common/content_hash.hpp"
#include "text/find_bytes.hpp"

namespace bpe::python {

void bind_documents(nb::module_ &m) {
  m.def(
      "find_separators",
      [](nb::object buffer, nb::bytes separator) {
        const BufferView text(buffer);
        std::vector<uint64_t> starts;
        {
          nb::gil_scoped_release unlocked;
          for_each_document(text.data(), text.size(), {separator.c_str(), separator.size()},
                            [&](size_t, size_t stop) { starts.push_back(stop); });
          starts.pop_back(); // the end of the last document
        }
        return owned_array(std::move(starts));
      },
      nb::arg("buffer"), nb::arg("separator"));
  m.def(
      "find_special_tokens",
      [](nb::object buffer, const Items<nb::bytes> &special_tokens) {
        const BufferView text(buffer);
        std::vector<bpe::SpecialToken> list;
        for (const nb::bytes &token : special_tokens)
          list.push_back({{token.c_str(), token.size()}, static_cast<uint32_t>(list.size())});
        std::vector<uint64_t> starts;
        std::vector<uint32_t> which;
        {
          nb::gil_scoped_release unlocked;
          const bpe::SpecialTokens tokens(std::move(list));
          bpe::SpecialTokens::Search search(tokens, text.data(), text.size());
          for (bpe::SpecialTokens::Match match; (match = search.next()).start < text.size();) {
            starts.push_back(match.start);
            which.push_back(match.value);
          }
        }
        return std::make_pair(owned_array(std::move(starts)), owned_array(std::move(which)));
      },
      nb::arg("buffer"), nb::arg("special_tokens"));
  m.def(
      "rows_with_special_tokens",
      [](nb::object buffer, const RowOffsets &offsets, const Items<nb::bytes> &special_tokens) {
        const BufferView text(buffer);
        const size_t rows = row_count(text, offsets);
        const bpe::SpecialTokens tokens = special_tokens_to_cut_at(special_tokens);
        std::vector<uint64_t> found;
        {
          nb::gil_scoped_release unlocked;
          for (size_t i = 0; i < rows; ++i) {
            const size_t stop = offsets.data()[i + 1];
            if (tokens.find(text.data(), stop, offsets.data()[i]).start < stop)
              found.push_back(i);
          }
        }
        return owned_array(std::move(found));
      },
      nb::arg("buffer"), nb::arg("offsets"), nb::arg("special_tokens"));
  m.def(
      "xxh64",
      [](nb::object buffer, uint64_t seed) {
        const BufferView data(buffer);
        nb::gil_scoped_release unlocked;
        return bpe::xxh64(data.data(), data.size(), seed);
      },
      nb::arg("buffer"), nb::arg("seed") = 0);
  nb::class_<bpe::Xxh64>(m, "Xxh64")
      .def(nb::init<uint64_t>(), nb::arg("seed") = 0)
      .def(
          "update",
          [](bpe::Xxh64 &hash, nb::object buffer) {
            const BufferView data(buffer);
            nb::gil_scoped_release unlocked;
            hash.update(data.data(), data.size());
          },
          nb::arg("buffer"))
      .def("digest", &bpe::Xxh64::digest)
      .def("copy", [](const bpe::Xxh64 &hash) { return hash; });
}

} // namespace bpe::python
