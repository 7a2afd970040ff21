// Runs a target on random inputs, for compilers and emulators without libFuzzer: PROGRAM COUNT [SEED]
#include "input.hpp"

#include <random>

int main(int argc, char **argv) {
  const unsigned long count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  std::mt19937 random(argc > 2 ? static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)) : 1);
  for (unsigned long i = 0; i < count; ++i) {
    std::vector<uint8_t> data(random() % 600);
    const bool is_ascii = random() % 2 == 0;
    for (uint8_t &byte : data)
      byte = static_cast<uint8_t>(is_ascii ? random() % 128 : random());
    LLVMFuzzerTestOneInput(data.data(), data.size());
  }
  std::printf("%lu inputs\n", count);
  return 0;
}
