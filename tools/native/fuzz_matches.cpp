// Matches reconstruct the tokens. No match crosses its block, exceeds the maximum offset or is shorter than
// the minimum.
//
// planted: flat_tokens/native/find_matches.cpp: `(offset > farthest)` -> `(offset > farthest + 1)`
#include "fuzz_input.hpp"

#include "find_matches.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static std::vector<uint32_t> table(size_t{1} << flat_tokens::match_table_bits);
  fuzz::Input input(data, size);
  const size_t shortest = 2 + input.below(2), block = 1 + input.below(1000), farthest = 1 + input.below(1000);
  const std::string_view head = input.bytes(6);
  fuzz::Input how(bpe::bytes_of(head), head.size());
  std::vector<uint32_t> tokens;
  for (const char byte : fuzz::stretched(how, std::string(input.rest()), 2000)) // few different ones
    tokens.push_back(static_cast<uint8_t>(byte) * (byte & 1 ? 1u : 0x01000193u));
  const fuzz::Exact held({reinterpret_cast<const char *>(tokens.data()), 4 * tokens.size()});
  const auto *const given = reinterpret_cast<const uint32_t *>(held.data());
  const size_t most = tokens.size() / shortest + (tokens.size() + block - 1) / block;
  std::unique_ptr<flat_tokens::Match[]> matches(new flat_tokens::Match[most]);
  const size_t count =
      flat_tokens::find_matches(given, tokens.size(), shortest, block, farthest, matches.get(), table.data());
  fuzz::expect(count <= most, "there are no more matches than is said");
  std::vector<uint32_t> made;
  size_t block_start = 0;
  for (size_t i = 0; i < count; ++i) {
    const flat_tokens::Match &match = matches[i];
    fuzz::expect(match.literals % 4 == 0 && match.length % 4 == 0 && match.offset % 4 == 0,
                 "matches are of tokens");
    fuzz::expect(made.size() + match.literals / 4 <= tokens.size(), "literals are tokens that there are");
    for (size_t left = match.literals / 4; left > 0; --left)
      made.push_back(tokens[made.size()]);
    if (match.offset == 0) {
      fuzz::expect(match.length == 0 && made.size() == std::min(tokens.size(), block_start + block),
                   "a block ends where it should");
      block_start = made.size();
      continue;
    }
    const size_t offset = match.offset / 4, length = match.length / 4;
    fuzz::expect(offset <= farthest && offset <= made.size() && length >= shortest,
                 "a match is within its bounds");
    for (size_t left = length; left > 0; --left)
      made.push_back(made[made.size() - offset]);
    fuzz::expect(made.size() <= block_start + block, "a match stays in its block");
  }
  fuzz::expect(made == tokens, "matches give the tokens again");
  return 0;
}
