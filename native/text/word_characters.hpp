// Character classes that added tokens check around them: `\w` and `\s` of Rust's regex crate, Unicode 16.0.
#pragma once

#include <cstdint>

namespace bpe {

bool is_word_character(uint32_t code_point);
bool is_space(uint32_t code_point);

} // namespace bpe
