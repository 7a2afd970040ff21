"""Write native/text/word_characters.cpp from the project's Unicode tables.

python tools/generate_word_characters.py > native/text/word_characters.cpp
"""

from __future__ import annotations

from bpe.pretokenization.unicode_tables import required

TEXT = """// Written by tools/generate_word_characters.py; do not edit.
#include "text/word_characters.hpp"

#include <algorithm>
#include <iterator>

namespace bpe {{

namespace {{

struct Range {{
  uint32_t start, stop;
}};

// clang-format off
constexpr Range words[] = {{
{words}
}};
constexpr Range spaces[] = {{
{spaces}
}};
// clang-format on

template <size_t size> bool is_in(const Range (&ranges)[size], uint32_t code_point) {{
  const Range *const behind =
      std::upper_bound(std::begin(ranges), std::end(ranges), code_point,
                       [](uint32_t c, const Range &range) {{ return c < range.start; }});
  return behind != ranges && code_point < behind[-1].stop;
}}

}} // namespace

bool is_word_character(uint32_t code_point) {{
  return is_in(words, code_point);
}}

bool is_space(uint32_t code_point) {{
  return is_in(spaces, code_point);
}}

}} // namespace bpe
"""


def _rows(name: str) -> str:
    spans = [f"{{{start},{stop}}}" for start, stop in required("rust", name).ranges]
    return ",\n".join(",".join(spans[place : place + 8]) for place in range(0, len(spans), 8))


def cpp() -> str:
    """Return the source text."""
    return TEXT.format(words=_rows(r"\w"), spaces=_rows(r"\s"))


if __name__ == "__main__":
    print(cpp(), end="")
