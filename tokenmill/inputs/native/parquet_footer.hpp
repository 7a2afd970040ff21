// Where the column chunks of a Parquet file lie, from the metadata in its footer.
//
// The footer is one struct in Thrift's compact protocol (parquet-format, parquet.thrift: FileMetaData). Of it
// the few numbers are read that say where the pages of a column begin and how much they are; all else is
// stepped over. Arrow has them, too, but ends the process where what stands beside them is damaged or
// encrypted.
//
// Cost: one pass over the footer. Memory: four numbers for each column chunk, which takes three bytes there
// at least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace corpus {

// An encrypted one has -1, -1, 0, 0.
struct ColumnChunk {
  int64_t
      start; // the byte of the file that its first page begins at, a dictionary's or one of data; 0 or more
  int64_t stop;      // the byte behind its pages
  int64_t unpacked;  // bytes of the pages before compression
  int64_t encodings; // bit i: it has pages of the encoding with number i; only those below 63
};

// Row group by row group, `columns` chunks each. Throws std::invalid_argument, with the byte of the footer,
// for what is no FileMetaData and for a row group of another number of columns.
std::vector<ColumnChunk> parquet_chunks(const uint8_t *footer, size_t size, size_t columns);

} // namespace corpus
