#include "normalize/unicode_tables.hpp"

namespace bpe::unicode {

#include "normalize/unicode_tables.inc"

} // namespace bpe::unicode
