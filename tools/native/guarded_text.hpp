// Seeded texts with all kinds of characters, next to inaccessible pages.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using Random = std::mt19937_64;

inline size_t below(Random &random, size_t stop) {
  return random() % stop;
}

// A text with an inaccessible page directly after its last byte or before its first.
class GuardedText {
public:
  GuardedText(const std::string &text, bool at_end) : size_(text.size()) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t room = (text.size() + page - 1) / page * page;
    mapped_ = room + 2 * page;
    void *const place = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
      std::abort();
    start_ = static_cast<uint8_t *>(place);
    if (room > 0 && mprotect(start_ + page, room, PROT_READ | PROT_WRITE) != 0)
      std::abort();
    data_ = start_ + page + (at_end ? room - text.size() : 0);
    if (!text.empty())
      std::memcpy(data_, text.data(), text.size());
  }
  ~GuardedText() { munmap(start_, mapped_); }
  GuardedText(const GuardedText &) = delete;
  GuardedText &operator=(const GuardedText &) = delete;

  uint8_t *data() { return data_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {reinterpret_cast<const char *>(data_), size_}; }

private:
  uint8_t *start_, *data_;
  size_t mapped_, size_;
};

inline void append_character(std::string &text, uint32_t c) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 63));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
  }
}

inline uint32_t any_character(Random &random) {
  for (;;) {
    constexpr uint32_t stops[] = {0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000};
    const uint32_t c = static_cast<uint32_t>(below(random, stops[below(random, std::size(stops))]));
    if (c < 0xD800 || c >= 0xE000)
      return c;
  }
}

// Special cases of patterns: contractions, the long s and the Kelvin sign (which fold to ASCII), spaces
// beyond ASCII, digits of other scripts, marks, title case, ideographs, and similar pieces.
constexpr const char *nasty_pieces[] = {" ",
                                        "  ",
                                        "\t",
                                        "\n",
                                        "\r\n",
                                        " \n ",
                                        "\u00a0",
                                        "\u3000",
                                        "\u2028",
                                        "\u0085",
                                        "'s",
                                        "'LL",
                                        "'t",
                                        "'",
                                        "''",
                                        "'\u017f",
                                        "'\u212a",
                                        "1",
                                        "123",
                                        "12345",
                                        "\u0663",
                                        "\u00bd",
                                        "\u00b2",
                                        "\u01c5",
                                        "e\u0301",
                                        "\u0301",
                                        "\u00e9",
                                        "\u042f",
                                        "\u0436",
                                        "\u4e2d\u6587",
                                        "\ud55c",
                                        "\u0e01\u0e34",
                                        "\u0928\u093f",
                                        "\U0001f600",
                                        "\U0001d7d9",
                                        "\U00020000",
                                        "\u02b0",
                                        "/",
                                        "//\n",
                                        "...\r\n",
                                        "-----",
                                        "\x01",
                                        "\x7f",
                                        "A",
                                        "aB",
                                        "HTMLParser"};

// Returns a character of three bytes: from enough to fill a register with distinct ones, from few enough for
// repeated pairs.
inline std::string ideograph(Random &random) {
  std::string character;
  append_character(character, 0x4E00 + 61 * static_cast<uint32_t>(below(random, 96)));
  return character;
}

inline std::string make_text(Random &random, size_t size) {
  const size_t kind = below(random, 10);
  const uint32_t repeated = any_character(random);
  std::string text;
  while (text.size() < size) {
    std::string piece;
    const size_t choice = kind == 9 ? below(random, 8) : kind;
    if (choice == 0) { // words
      if (below(random, 3) > 0)
        piece = " ";
      for (size_t i = below(random, below(random, 8) == 0 ? 40 : 8) + 1; i > 0; --i)
        piece += static_cast<char>((below(random, 6) == 0 ? 'A' : 'a') + below(random, 26));
    } else if (choice == 1) {
      piece = nasty_pieces[below(random, std::size(nasty_pieces))];
    } else if (choice == 2) {
      append_character(piece, any_character(random));
    } else if (choice == 3) { // few letters, for deep merges
      for (size_t i = below(random, 30) + 1; i > 0; --i)
        piece += "abc -\n"[below(random, below(random, 4) == 0 ? 6 : 3)];
    } else if (choice == 4) { // Chinese
      for (size_t i = below(random, 60) + 1; i > 0; --i)
        piece += ideograph(random);
      if (below(random, 2) == 0)
        piece += "abc"[below(random, 3)];
      if (below(random, 3) == 0)
        piece += nasty_pieces[below(random, std::size(nasty_pieces))];
    } else if (choice == 5) { // single characters in blocks of ASCII
      piece.assign(below(random, 200), 'a');
      append_character(piece, any_character(random));
    } else if (choice == 6) { // indented lines
      piece = "\n" + std::string(below(random, 70), " \t"[below(random, 8) == 0]);
      piece.append(below(random, 9), 'a');
    } else if (choice == 7) { // characters of four mostly equal bytes
      append_character(piece, 0x10000 + static_cast<uint32_t>(below(random, 0x3000)));
    } else { // a run
      append_character(piece, below(random, 50) == 0 ? any_character(random) : repeated);
    }
    if (text.size() + piece.size() > size)
      piece.assign(size - text.size(), ' ');
    text += piece;
  }
  return text;
}

// Sizes around the widths of registers, blocks, groups, batches and cache keys.
inline std::vector<size_t> sizes_around_widths() {
  std::set<size_t> sizes;
  for (const size_t width :
       {0, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128, 192, 256, 320, 512, 1024, 4096, 8192, 16384})
    for (const int off : {-4, -3, -2, -1, 0, 1, 2, 3, 4})
      if (off >= 0 || width >= 4)
        sizes.insert(width + static_cast<size_t>(off));
  return {sizes.begin(), sizes.end()};
}
