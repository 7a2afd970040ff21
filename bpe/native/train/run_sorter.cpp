#include "train/sorted_run.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace bpe {
namespace {

// Larger groups are split by one more byte.
constexpr size_t sorted_by_comparing = 256;

PretokenRecord record_of(const PretokenCell &cell) {
  if (!cell.is_long()) [[likely]]
    return {__builtin_bswap64(cell.low), __builtin_bswap64(cell.high), cell.count};
  uint8_t *const text = cell.stored();
  std::memcpy(text + 8, &cell.count, 8); // the record has no room for it
  return {__builtin_bswap64(load_word(cell.bytes())), __builtin_bswap64(load_word(cell.bytes() + 8)) | 0xFF,
          reinterpret_cast<uintptr_t>(text)};
}

// Sort records that agree in all bits of `first` except the `shift` lowest. spare: room for as many records.
void sort_records(PretokenRecord *records, size_t size, int shift, PretokenRecord *spare) {
  if (size <= sorted_by_comparing || shift == 0) {
    std::sort(records, records + size);
    return;
  }
  shift -= 8;
  std::array<uint32_t, 257> stops{};
  for (size_t i = 0; i < size; i++)
    stops[(records[i].first >> shift & 0xFF) + 1]++;
  for (size_t byte = 0; byte < 256; byte++)
    stops[byte + 1] += stops[byte];
  for (size_t i = 0; i < size; i++)
    spare[stops[records[i].first >> shift & 0xFF]++] = records[i];
  std::copy(spare, spare + size, records);
  size_t start = 0;
  for (size_t byte = 0; byte < 256; byte++) { // a group now stops where the next one started
    if (stops[byte] - start > 1)
      sort_records(records + start, stops[byte] - start, shift, spare);
    start = stops[byte];
  }
}

} // namespace

SortedRun RunSorter::sorted(const std::vector<PretokenCell> &cells, size_t used, RunMemory &memory) {
  if (room_ < used) {
    records_.reset();
    spare_.reset();
    room_ = 0;
    records_.reset(new PretokenRecord[used]);
    spare_.reset(new PretokenRecord[used]);
    room_ = used;
  }
  // First by two bytes, directly from the cells.
  std::vector<uint32_t> stops((1 << 16) + 1);
  const auto group_of = [](const PretokenCell &cell) {
    const uint64_t word = cell.is_long() ? load_word(cell.bytes()) : cell.low;
    return (word & 0xFF) << 8 | (word >> 8 & 0xFF);
  };
  for (const PretokenCell &cell : cells)
    if (cell.high != 0)
      stops[group_of(cell) + 1]++;
  for (size_t group = 0; group < 1 << 16; group++)
    stops[group + 1] += stops[group];
  PretokenRecord *const records = records_.get();
  for (const PretokenCell &cell : cells)
    if (cell.high != 0)
      records[stops[group_of(cell)]++] = record_of(cell);
  size_t start = 0; // a group now stops where the next one started
  for (size_t group = 0; group < 1 << 16; group++) {
    if (stops[group] - start > 1)
      sort_records(records + start, stops[group] - start, 48, spare_.get());
    start = stops[group];
  }
  SortedRun run(memory);
  for (size_t i = 0; i < used; i++)
    run.append(records[i]);
  return run;
}

} // namespace bpe
