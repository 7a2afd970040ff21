// Rows put apart by split, with ids in front and behind, narrow and wide, as a plain loop puts them.
//
// planted: convert/native/stored_ids.cpp: `if (length > 0)` -> `if (length > 1)`
#include "fuzz_input.hpp"

#include "stored_ids.hpp"

namespace {

struct Split {
  std::vector<uint32_t> ids;
  std::vector<uint64_t> starts;
  uint64_t longest = 0;
  uint32_t highest = 0;
};

template <class Id>
void check(const std::vector<uint32_t> &ids, const std::vector<uint64_t> &offsets, const bool *marked,
           const convert::EndIds &ends, const std::array<uint64_t, 2> &before) {
  const size_t rows = offsets.size() - 1;
  Split wanted[2];
  for (size_t row = 0; row < rows; ++row) {
    Split &split = wanted[marked[row]];
    if (offsets[row] == offsets[row + 1])
      continue;
    split.starts.push_back(before[marked[row]] + split.ids.size());
    const size_t first = split.ids.size();
    if (ends.front)
      split.ids.push_back(*ends.front);
    split.ids.insert(split.ids.end(), ids.begin() + static_cast<ptrdiff_t>(offsets[row]),
                     ids.begin() + static_cast<ptrdiff_t>(offsets[row + 1]));
    if (ends.back)
      split.ids.push_back(*ends.back);
    split.longest = std::max<uint64_t>(split.longest, split.ids.size() - first);
  }
  const size_t total = wanted[0].ids.size() + wanted[1].ids.size();
  std::unique_ptr<Id[]> out(new Id[total]);
  std::unique_ptr<uint64_t[]> starts(new uint64_t[rows]);
  const auto stats = convert::partition_by_split(ids.data(), offsets.data(), marked, rows, ends, before,
                                                 out.get(), starts.get());
  const Id *id = out.get();
  const uint64_t *start = starts.get();
  for (size_t which = 0; which < 2; ++which) {
    for (const uint32_t each : wanted[which].ids) {
      fuzz::expect(*id++ == static_cast<Id>(each), "ids are put apart in their order");
      wanted[which].highest = std::max(wanted[which].highest, each & convert::kIdBits);
    }
    for (const uint64_t each : wanted[which].starts)
      fuzz::expect(*start++ == each, "rows begin where their ids do");
    fuzz::expect(stats[which].ids == wanted[which].ids.size() &&
                     stats[which].rows == wanted[which].starts.size() &&
                     stats[which].longest == wanted[which].longest,
                 "the splits are told");
    if constexpr (sizeof(Id) == 4)
      fuzz::expect(stats[which].highest == wanted[which].highest, "the highest id is told");
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
  const std::array<uint64_t, 2> before{input.below(65536), input.byte()};
  std::vector<uint64_t> offsets{input.below(3)};
  std::vector<uint32_t> ids(offsets[0]);
  std::string marks;
  while (input.left() > 0) {
    const uint8_t options = input.byte();
    marks += static_cast<char>(options & 1);
    for (size_t count = options / 2 % 16; count > 0; --count)
      ids.push_back(static_cast<uint32_t>(input.byte()) << options % 24);
    offsets.push_back(ids.size());
  }
  std::unique_ptr<bool[]> marked(new bool[marks.size()]);
  for (size_t i = 0; i < marks.size(); ++i)
    marked[i] = marks[i] != 0;
  check<uint16_t>(ids, offsets, marked.get(), ends, before);
  check<uint32_t>(ids, offsets, marked.get(), ends, before);
  return 0;
}
