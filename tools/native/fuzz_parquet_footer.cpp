// Footers of Parquet files, written from drawn column chunks with drawn fields between them, against what was
// drawn; the same cut off; and footers of any bytes.
//
// planted: tokenmill/inputs/native/parquet_footer.cpp: `head >> 4 == 15 ? length()` -> `head >> 4 == 14 ?
// length()`
#include "fuzz_input.hpp"

#include "parquet_footer.hpp"

#include <stdexcept>

namespace {

enum Type : uint8_t {
  truth = 1,
  byte = 3,
  i32 = 5,
  i64 = 6,
  real = 7,
  binary = 8,
  list = 9,
  map = 11,
  structure = 12
};

void put_number(std::string &out, uint64_t value) {
  for (; value > 127; value >>= 7)
    out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void put_signed(std::string &out, int64_t value) {
  put_number(out, value < 0 ? ~(static_cast<uint64_t>(value) << 1) : static_cast<uint64_t>(value) << 1);
}

void put_list(std::string &out, size_t count, uint8_t type) {
  out += static_cast<char>((count < 15 ? count : 15) << 4 | type);
  if (count >= 15)
    put_number(out, count);
}

class Footer {
public:
  explicit Footer(fuzz::Input &input) : input_(input) {}

  void row_groups(size_t groups, size_t columns) {
    put_field(4, others(0, 4), list);
    put_list(text, groups, structure);
    for (size_t i = 0; i < groups; ++i)
      row_group(columns);
    others(4, 200);
    text += '\0';
  }

  std::string text;
  std::vector<corpus::ColumnChunk> chunks;

private:
  void put_field(int64_t field, int64_t before, uint8_t type) {
    if (field - before < 16 && !input_.flag()) {
      text += static_cast<char>((field - before) << 4 | type);
    } else {
      text += static_cast<char>(type);
      put_signed(text, field);
    }
  }

  // Some fields in front of `stop` that say nothing of the pages, behind the one with the number `before`;
  // the number of the last one.
  int64_t others(int64_t before, int64_t stop, int64_t start = 0) {
    for (int64_t field = std::max(start, before + 1) + static_cast<int64_t>(input_.below(3));
         field < stop && input_.below(4) != 0;) {
      const uint8_t type = input_.below(8) == 0 ? map : 1 + static_cast<uint8_t>(input_.below(13));
      put_field(field, before, type);
      value(type, 0);
      before = field;
      field += 1 + static_cast<int64_t>(input_.below(20));
    }
    return before;
  }

  int64_t number() {
    const int64_t known[] = {0, 1, -1, 4, 1 << 20, INT64_MAX, INT64_MIN};
    return input_.flag() ? static_cast<int64_t>(input_.below(60000)) : known[input_.below(std::size(known))];
  }

  void value(uint8_t type, int depth) {
    const bool is_deep = depth > 4;
    switch (type) {
    case 1:
    case 2:
      return;
    case byte:
      text += static_cast<char>(input_.byte());
      return;
    case 4:
    case i32:
    case i64:
      return put_signed(text, number());
    case real:
      text += std::string(8, static_cast<char>(input_.byte()));
      return;
    case binary: {
      const std::string_view bytes = input_.bytes(input_.below(20));
      put_number(text, bytes.size());
      text += bytes;
      return;
    }
    case list:
    case 10: {
      const size_t count = input_.below(20);
      const uint8_t of = is_deep ? byte : 1 + static_cast<uint8_t>(input_.below(13));
      put_list(text, count, of);
      for (size_t i = 0; i < count; ++i)
        item(of, depth);
      return;
    }
    case map: {
      const size_t count = input_.below(4);
      put_number(text, count);
      if (count > 0)
        text += static_cast<char>(binary << 4 | (is_deep ? byte : structure));
      for (size_t i = 0; i < count; ++i) {
        item(binary, depth);
        item(is_deep ? byte : structure, depth);
      }
      return;
    }
    case structure:
      if (!is_deep && input_.flag()) {
        put_field(1, 0, real);
        value(real, depth + 1);
      }
      text += '\0';
      return;
    default: // a uuid
      text += std::string(16, 'u');
    }
  }

  void item(uint8_t type, int depth) {
    if (type <= 2)
      text += static_cast<char>(truth);
    else
      value(type, depth + 1);
  }

  void row_group(size_t columns) {
    put_field(1, 0, list);
    put_list(text, columns, structure);
    for (size_t i = 0; i < columns; ++i)
      column_chunk();
    others(1, 300);
    text += '\0';
  }

  void column_chunk() {
    put_field(3, others(0, 3), structure);
    corpus::ColumnChunk chunk = pages();
    const int64_t behind = others(3, 8);
    if (input_.below(8) == 0) {
      const int64_t field = 8 + static_cast<int64_t>(input_.below(2));
      put_field(field, behind, binary);
      value(binary, 0);
      chunk = {-1, -1, 0, 0};
    }
    text += '\0';
    chunks.push_back(chunk);
  }

  corpus::ColumnChunk pages() {
    int64_t last = others(0, 2), encodings = 0;
    put_field(2, last, list);
    const size_t count = input_.below(20);
    put_list(text, count, i32);
    for (size_t i = 0; i < count; ++i) {
      const int64_t number = static_cast<int64_t>(input_.below(66)) - 1;
      put_signed(text, number);
      if (number >= 0 && number < 63)
        encodings |= int64_t{1} << number;
    }
    last = others(2, 6);
    int64_t found[12] = {};
    for (const int64_t field : {6, 7, 9, 11})
      if (input_.below(4) != 0) {
        put_field(field, last, i64);
        put_signed(text, found[field] = number());
        last = field;
      }
    others(last, 100, 12);
    text += '\0';
    int64_t start = 0;
    for (const int64_t place : {found[9], found[11]})
      if (place > 0 && (start == 0 || place < start))
        start = place;
    const int64_t packed = std::max<int64_t>(0, found[7]);
    return {start, packed > INT64_MAX - start ? INT64_MAX : start + packed, std::max<int64_t>(0, found[6]),
            encodings};
  }

  fuzz::Input &input_;
};

bool is_refused(std::string_view footer, size_t columns) {
  const fuzz::Exact bytes(footer);
  try {
    const size_t count = corpus::parquet_chunks(bytes.data(), bytes.size(), columns).size();
    fuzz::expect(count <= footer.size() && (columns == 0 ? count == 0 : count % columns == 0),
                 "row groups have the columns of the file");
    return false;
  } catch (const std::invalid_argument &) {
    return true;
  }
}

bool equal(const corpus::ColumnChunk &a, const corpus::ColumnChunk &b) {
  return a.start == b.start && a.stop == b.stop && a.unpacked == b.unpacked && a.encodings == b.encodings;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const size_t columns = input.below(18), groups = input.below(18), cut = input.below(60000);
  Footer footer(input);
  footer.row_groups(groups, columns);
  const fuzz::Exact bytes(footer.text + (input.flag() ? "a signature" : ""));
  const auto found = corpus::parquet_chunks(bytes.data(), bytes.size(), columns);
  fuzz::expect(std::equal(found.begin(), found.end(), footer.chunks.begin(), footer.chunks.end(), equal),
               "column chunks are those that were written");
  fuzz::expect(is_refused(footer.text.substr(0, cut % footer.text.size()), columns),
               "a cut footer is refused");
  is_refused(input.rest(), columns);
  return 0;
}
