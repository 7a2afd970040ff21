// for each sequence: if it ends more than max_tokens after the start of the pack, it starts the next pack
#include "next_fit.hpp"

namespace flat_tokens {

NextFit next_fit(const int64_t *starts, size_t count, int64_t begin, int64_t max_tokens, int64_t *bounds) {
  size_t packs = 0;
  for (size_t i = 0; i < count; ++i) {
    if (starts[i + 1] - begin <= max_tokens)
      continue;
    if (begin != starts[i])
      bounds[packs++] = begin = starts[i];
    if (starts[i + 1] - begin > max_tokens)
      return {packs, i};
  }
  return {packs, count};
}

} // namespace flat_tokens
