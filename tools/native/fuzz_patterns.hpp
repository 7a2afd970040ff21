// The automata of the targets. tools/fuzz_native writes their tables and passes the path.
#pragma once

#include "pattern_tables.hpp"

#include <cstdio>
#include <cstdlib>

namespace fuzz {

inline const std::vector<Pattern> &patterns() {
  static const std::vector<Pattern> read = [] {
    const char *const path = std::getenv("FUZZ_TABLES");
    std::vector<Pattern> found = read_tables(path ? path : "");
    if (found.empty()) {
      std::fprintf(stderr, "FUZZ_TABLES must name a file that tools/native/write_tables.py has written\n");
      std::exit(2);
    }
    return found;
  }();
  return read;
}

} // namespace fuzz
