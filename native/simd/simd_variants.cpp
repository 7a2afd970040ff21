#include "simd/simd_variants.hpp"

#include <atomic>
#include <stdexcept>

namespace bpe {

namespace {

std::vector<const SimdVariant *> runnable() {
  std::vector<const SimdVariant *> variants;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_bits =
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  if (has_bits && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512vbmi2"))
    variants.push_back(&avx512_variant);
  if (has_bits && __builtin_cpu_supports("avx2"))
    variants.push_back(&avx2_variant);
#elif defined(__aarch64__)
  variants.push_back(&neon_variant); // part of the base instruction set
#endif
  variants.push_back(&portable_variant);
  return variants;
}

std::atomic<const SimdVariant *> &chosen() {
  static std::atomic<const SimdVariant *> variant{runnable().front()};
  return variant;
}

} // namespace

const SimdVariant &simd_variant() {
  return *chosen().load(std::memory_order_relaxed);
}

std::vector<std::string> simd_variant_names() {
  std::vector<std::string> names;
  for (const SimdVariant *variant : runnable())
    names.emplace_back(variant->name);
  return names;
}

void choose_simd_variant(const std::string &name) {
  std::string known;
  for (const SimdVariant *variant : runnable()) {
    if (variant->name == name) {
      chosen().store(variant, std::memory_order_relaxed);
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(variant->name);
  }
  throw std::invalid_argument("SIMD variant '" + name + "' does not run here; choose one of " + known);
}

} // namespace bpe
