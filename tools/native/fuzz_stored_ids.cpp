// Rows are separated by split like in a naive loop, with IDs before and after, with and without a loss mask.
//
// planted: convert/native/stored_ids.cpp: `if (length == 0)` -> `if (length <= 1)`
#include "fuzz_input.hpp"

#include "stored_ids.hpp"

namespace {

struct Split {
  std::vector<uint32_t> words;
  std::vector<uint64_t> starts;
  uint64_t not_trained = 0;
  uint32_t highest = 0;
};

void check(const std::vector<uint32_t> &ids, const std::vector<uint64_t> &offsets, const bool *marked,
           const convert::EndIds &ends, bool has_mask, const std::array<uint64_t, 2> &before) {
  const size_t rows = offsets.size() - 1;
  Split wanted[2];
  for (size_t row = 0; row < rows; ++row) {
    Split &split = wanted[marked[row]];
    if (offsets[row] == offsets[row + 1])
      continue;
    std::vector<uint32_t> document(ids.begin() + static_cast<ptrdiff_t>(offsets[row]),
                                   ids.begin() + static_cast<ptrdiff_t>(offsets[row + 1]));
    if (ends.front)
      document.insert(document.begin(), *ends.front);
    if (ends.back)
      document.push_back(*ends.back);
    const size_t first = split.words.size();
    split.starts.push_back(before[marked[row]] + first);
    for (const uint32_t id : document) {
      const bool is_marked = has_mask && id >= convert::kNotTrained;
      const uint32_t plain = is_marked ? id - convert::kNotTrained : id;
      split.words.push_back(2 * plain + (is_marked ? convert::kNotTrained : 0));
      split.not_trained += is_marked;
      split.highest = std::max(split.highest, plain);
    }
    ++split.words[first];
  }
  const size_t total = wanted[0].words.size() + wanted[1].words.size();
  std::unique_ptr<uint32_t[]> words(new uint32_t[total]);
  std::unique_ptr<uint64_t[]> starts(new uint64_t[rows]);
  const auto stats = convert::partition_by_split(ids.data(), offsets.data(), marked, rows, ends, has_mask,
                                                 before, words.get(), starts.get());
  const uint32_t *word = words.get();
  const uint64_t *start = starts.get();
  for (size_t which = 0; which < 2; ++which) {
    const Split &split = wanted[which];
    for (const uint32_t each : split.words)
      fuzz::expect(*word++ == each, "words are put apart in their order");
    for (const uint64_t each : split.starts)
      fuzz::expect(*start++ == each, "rows begin where their words do");
    fuzz::expect(stats[which].words == split.words.size() && stats[which].rows == split.starts.size() &&
                     stats[which].not_trained == split.not_trained && stats[which].highest == split.highest,
                 "the splits are counted");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  convert::EndIds ends;
  if (input.flag())
    ends.front = static_cast<uint32_t>(input.below(65536)) * 100;
  if (input.flag())
    ends.back = input.byte();
  const bool has_mask = input.flag();
  const std::array<uint64_t, 2> before{input.below(65536), input.byte()};
  std::vector<uint64_t> offsets{input.below(3)};
  std::vector<uint32_t> ids(offsets[0]);
  std::string marks;
  while (input.left() > 0) {
    const uint8_t options = input.byte();
    marks += static_cast<char>(options & 1);
    for (size_t count = options / 2 % 16; count > 0; --count) {
      const uint32_t id = static_cast<uint32_t>(input.byte()) << options % 23; // below 2^30
      ids.push_back(has_mask && id % 2 == 1 ? id | convert::kNotTrained : id);
    }
    offsets.push_back(ids.size());
  }
  std::unique_ptr<bool[]> marked(new bool[marks.size()]);
  for (size_t i = 0; i < marks.size(); ++i)
    marked[i] = marks[i] != 0;
  check(ids, offsets, marked.get(), ends, has_mask, before);
  return 0;
}
