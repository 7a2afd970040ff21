// The characters that a `single_word` token may not stand beside: `\w` of Rust's regex crate.
#pragma once

#include <cstdint>

namespace bpe {

bool is_word_character(uint32_t code_point);

} // namespace bpe
