// Rows cut from encoded tokens, decoded ids and permutations, compared with plain loops.
//
// planted: flat_tokens/native/decode_ids.cpp: `encoded[i] >> 1` -> `encoded[i] >> 2`
#include "fuzz_input.hpp"

#include "cut_rows.hpp"
#include "decode_ids.hpp"
#include "permute.hpp"

namespace {

template <class Id>
void check_cut(const std::vector<uint32_t> &encoded, const std::vector<int64_t> &firsts, size_t length,
               uint32_t start) {
  const size_t places = firsts.size() * length;
  std::unique_ptr<Id[]> inputs(new Id[places]), targets(new Id[places]);
  std::unique_ptr<uint8_t[]> starts(new uint8_t[places]);
  flat_tokens::cut_rows(encoded.data(), firsts.data(), firsts.size(), length, static_cast<Id>(start),
                        inputs.get(), targets.get(), starts.get());
  const auto place_of = [&](size_t i) { return static_cast<size_t>(firsts[i / length]) + i % length; };
  for (size_t i = 0; i < places; ++i) {
    const size_t at = place_of(i);
    const bool is_start = (encoded[at] & 1) != 0;
    const Id before = static_cast<Id>(encoded[at == 0 ? 0 : at - 1] >> 1);
    fuzz::expect(targets[i] == static_cast<Id>(encoded[at] >> 1) && starts[i] == is_start &&
                     inputs[i] == (is_start ? static_cast<Id>(start) : before),
                 "a row has its inputs and targets");
  }
  if constexpr (sizeof(Id) > sizeof(uint16_t)) {
    flat_tokens::cut_labels(encoded.data(), firsts.data(), firsts.size(), length, static_cast<Id>(start),
                            inputs.get(), targets.get(), starts.get());
    for (size_t i = 0; i < places; ++i) {
      const uint32_t token = encoded[place_of(i)];
      fuzz::expect(targets[i] == token >> 1 && inputs[i] == (token & 1 ? static_cast<Id>(start) : token >> 1),
                   "a row has its labels");
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const uint32_t start = input.byte();
  const uint64_t key = input.below(65536) * 0x9E3779B97F4A7C15u;
  const uint64_t range = 1 + input.below(200);
  const size_t length_number = input.below(65536), row_count = input.below(9);
  std::vector<size_t> row_numbers;
  for (size_t i = 0; i < row_count; ++i)
    row_numbers.push_back(input.below(65536));
  const std::string_view head = input.bytes(6);
  fuzz::Input how(bpe::bytes_of(head), head.size());
  std::vector<uint32_t> tokens;
  for (const char byte : fuzz::stretched(how, std::string(input.rest()), 1500))
    tokens.push_back(static_cast<uint8_t>(byte) * 0x01000193u); // odd numbers are starts

  std::vector<uint32_t> ids(tokens.size());
  std::vector<uint8_t> flags(tokens.size());
  const uint32_t largest = flat_tokens::decode_ids(tokens.data(), tokens.size(), ids.data(), flags.data());
  uint32_t wanted = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    fuzz::expect(ids[i] == tokens[i] >> 1 && flags[i] == (tokens[i] & 1), "a token is an id and a flag");
    wanted = std::max(wanted, tokens[i]);
  }
  fuzz::expect(largest == wanted, "the largest token is found");
  if (!tokens.empty()) {
    const size_t length = 1 + length_number % tokens.size();
    std::vector<int64_t> firsts;
    for (const size_t number : row_numbers)
      firsts.push_back(static_cast<int64_t>(number % (tokens.size() - length + 1)));
    check_cut<uint16_t>(tokens, firsts, length, start);
    check_cut<uint32_t>(tokens, firsts, length, start);
    check_cut<uint64_t>(tokens, firsts, length, start);
  }
  std::vector<uint64_t> values(range);
  for (uint64_t i = 0; i < range; ++i)
    values[i] = i;
  flat_tokens::permute(values.data(), values.size(), range, key);
  std::sort(values.begin(), values.end());
  for (uint64_t i = 0; i < range; ++i)
    fuzz::expect(values[i] == i, "a permutation has each value once");
  return 0;
}
