#include "train/sorted_run.hpp"

#include "common/thread_team.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace bpe {
namespace {

void write_items(const SortedRun &run, uint64_t start, uint8_t *bytes, uint64_t *ends, uint64_t *counts) {
  const uint64_t stop = start + run.pretoken_bytes();
  for (size_t i = 0; i < run.size(); i++) {
    const PretokenRecord &record = run[i];
    const uint64_t size = record.size();
    if (record.is_long()) {
      std::memcpy(bytes + start, record.text() + text_header_bytes, size);
    } else {
      const uint64_t words[2] = {__builtin_bswap64(record.first), __builtin_bswap64(record.second)};
      if (stop - start >= sizeof(words)) [[likely]] // later items overwrite the rest, up to `stop`
        std::memcpy(bytes + start, words, sizeof(words));
      else
        std::memcpy(bytes + start, words, size);
    }
    start += size;
    *ends++ = start;
    *counts++ = record.count();
  }
}

} // namespace

PretokenItems items_of(std::vector<SortedRun> &runs, unsigned threads) {
  PretokenItems items;
  std::vector<std::array<uint64_t, 2>> starts; // in pretokens, in bytes
  for (const SortedRun &run : runs) {
    starts.push_back({items.size, items.byte_count});
    items.size += run.size();
    items.byte_count += run.pretoken_bytes();
  }
  items.bytes.resize(items.byte_count);
  items.ends.resize(items.size * sizeof(uint64_t));
  items.counts.resize(items.size * sizeof(uint64_t));
  threads = static_cast<unsigned>(std::min<size_t>(threads, items.size / thread_records + 1));
  std::atomic<size_t> taken{0};
  ThreadTeam(threads).run([&](unsigned) {
    for (size_t range = taken++; range < runs.size(); range = taken++) {
      const auto [first, start] = starts[range];
      write_items(runs[range], start, static_cast<uint8_t *>(items.bytes.data()),
                  static_cast<uint64_t *>(items.ends.data()) + first,
                  static_cast<uint64_t *>(items.counts.data()) + first);
      runs[range] = SortedRun();
    }
  });
  return items;
}

} // namespace bpe
