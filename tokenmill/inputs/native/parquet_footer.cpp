#include "parquet_footer.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

namespace corpus {

namespace {

// Types of the compact protocol.
enum Type : uint8_t {
  stop_field,
  is_true,
  is_false,
  byte,
  i16,
  i32,
  i64,
  real,
  binary,
  list,
  set,
  map,
  structure,
  uuid
};

constexpr ColumnChunk encrypted_chunk = {-1, -1, 0, 0};
constexpr int deepest = 64; // levels of structs, lists and maps; a footer has some ten

class Thrift {
public:
  Thrift(const uint8_t *data, size_t size) : begin_(data), at_(data), end_(data + size) {}

  // Calls take(field, type) for each field of the struct that begins here; it reads the value or skips it.
  template <typename Take> void fields(Take take) {
    int64_t field = 0;
    for (;;) {
      const uint8_t head = next();
      const uint8_t type = head & 15;
      if (type == stop_field)
        return;
      field = head >> 4 ? field + (head >> 4) : integer();
      take(field, type);
    }
  }

  // Calls take(type) for each item of the list that begins here.
  template <typename Take> void items(Take take) {
    const uint8_t head = next();
    const uint8_t type = head & 15;
    for (uint64_t count = head >> 4 == 15 ? length() : head >> 4; count > 0; --count)
      take(type);
  }

  // The integer that stands here, as a zigzag varint.
  int64_t integer() {
    const uint64_t bits = varint();
    return static_cast<int64_t>(bits >> 1 ^ (0 - (bits & 1)));
  }

  void skip(uint8_t type, int depth = 0) {
    if (depth > deepest)
      fail("it is nested too deeply");
    switch (type) {
    case is_true:
    case is_false:
      return; // the type is the value
    case byte:
      return advance(1);
    case i16:
    case i32:
    case i64:
      varint();
      return;
    case real:
      return advance(8);
    case binary:
      return advance(length());
    case list:
    case set:
      return items([&](uint8_t item) { skip_item(item, depth); });
    case map:
      return skip_map(depth);
    case structure:
      return fields([&](int64_t, uint8_t of) { skip(of, depth + 1); });
    case uuid:
      return advance(16);
    default:
      fail("no such type");
    }
  }

  void require(bool is_right, const char *what) const {
    if (!is_right)
      fail(what);
  }

private:
  // In lists and maps a truth value has a byte of its own.
  void skip_item(uint8_t type, int depth) {
    type == is_true || type == is_false ? advance(1) : skip(type, depth + 1);
  }

  void skip_map(int depth) {
    uint64_t count = length();
    if (count == 0)
      return;
    const uint8_t types = next();
    for (; count > 0; --count) {
      skip_item(types >> 4, depth);
      skip_item(types & 15, depth);
    }
  }

  [[noreturn]] void fail(const char *what) const {
    throw std::invalid_argument("byte " + std::to_string(at_ - begin_) + " of the metadata: " + what);
  }

  uint8_t next() {
    require(at_ < end_, "it ends too early");
    return *at_++;
  }

  void advance(uint64_t bytes) {
    require(bytes <= static_cast<uint64_t>(end_ - at_), "it ends too early");
    at_ += bytes;
  }

  // A number of bytes or items; an item takes a byte at least.
  uint64_t length() {
    const uint64_t count = varint();
    require(count <= static_cast<uint64_t>(end_ - at_), "it ends too early");
    return count;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const uint8_t digit = next();
      value |= shift < 64 ? static_cast<uint64_t>(digit & 127) << shift : 0;
      if (digit < 128)
        return value;
    }
    fail("a number is too long");
  }

  const uint8_t *const begin_;
  const uint8_t *at_;
  const uint8_t *const end_;
};

// ColumnMetaData. Sizes and places are below zero in damaged files.
ColumnChunk pages_of(Thrift &footer) {
  int64_t data = 0, dictionary = 0, packed = 0, unpacked = 0, encodings = 0;
  footer.fields([&](int64_t field, uint8_t type) {
    if (field == 2 && type == list)
      footer.items([&](uint8_t item) {
        footer.require(item == i32, "an encoding is no number");
        if (const int64_t number = footer.integer(); number >= 0 && number < 63)
          encodings |= int64_t{1} << number;
      });
    else if (field == 6 && type == i64)
      unpacked = footer.integer();
    else if (field == 7 && type == i64)
      packed = footer.integer();
    else if (field == 9 && type == i64)
      data = footer.integer();
    else if (field == 11 && type == i64)
      dictionary = footer.integer();
    else
      footer.skip(type);
  });
  const bool has_both = data > 0 && dictionary > 0; // some write 0 where there is none
  const int64_t start =
      std::max<int64_t>(0, has_both ? std::min(data, dictionary) : std::max(data, dictionary));
  const int64_t rest = std::numeric_limits<int64_t>::max() - start;
  return {start, start + std::clamp<int64_t>(packed, 0, rest), std::max<int64_t>(0, unpacked), encodings};
}

// ColumnChunk.
ColumnChunk chunk_of(Thrift &footer) {
  std::optional<ColumnChunk> chunk;
  bool is_encrypted = false;
  footer.fields([&](int64_t field, uint8_t type) {
    is_encrypted = is_encrypted || field == 8 || field == 9;
    if (field == 3 && type == structure && !is_encrypted)
      chunk = pages_of(footer);
    else
      footer.skip(type);
  });
  footer.require(is_encrypted || chunk.has_value(), "a column chunk has no metadata");
  return is_encrypted ? encrypted_chunk : *chunk;
}

// The column chunks of a RowGroup, to the end of `chunks`.
void read_row_group(Thrift &footer, size_t columns, std::vector<ColumnChunk> &chunks) {
  const size_t before = chunks.size();
  footer.fields([&](int64_t field, uint8_t type) {
    if (field != 1 || type != list)
      return footer.skip(type);
    footer.items([&](uint8_t item) {
      footer.require(item == structure, "a column chunk is no struct");
      chunks.push_back(chunk_of(footer));
    });
  });
  footer.require(chunks.size() - before == columns,
                 "a row group has another number of columns than the file");
}

} // namespace

std::vector<ColumnChunk> parquet_chunks(const uint8_t *data, size_t size, size_t columns) {
  Thrift footer(data, size);
  std::vector<ColumnChunk> chunks;
  footer.fields([&](int64_t field, uint8_t type) {
    if (field != 4 || type != list)
      return footer.skip(type);
    footer.items([&](uint8_t item) {
      footer.require(item == structure, "a row group is no struct");
      read_row_group(footer, columns, chunks);
    });
  });
  return chunks;
}

} // namespace corpus
