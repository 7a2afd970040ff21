// A flat binary image: numbers and arrays one after the other, each at a multiple of eight bytes.
//
// For images made and read by one version of the core on one kind of machine: whoever keeps one keeps
// image_version with it and a checksum (bpe/compiled.py does). The reader still trusts no length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace bpe {

// To be raised with every change of what is written, and of what the numbers in it mean.
inline constexpr uint32_t image_version = 3;

class ImageWriter {
public:
  std::string bytes;

  template <class T> void put(const T &value) {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) == 8);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  // Of a vector or string.
  template <class Array> void put_array(const Array &array) {
    put(uint64_t{array.size()});
    bytes.append(reinterpret_cast<const char *>(array.data()), array.size() * sizeof array[0]);
    bytes.append((8 - bytes.size() % 8) % 8, '\0');
  }
};

// Throws std::invalid_argument where the image ends too early.
class ImageReader {
public:
  // The bytes must live as long as the reader.
  explicit ImageReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T> T get() {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) == 8);
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  template <class Array> void get_array(Array &array) {
    using Item = typename Array::value_type;
    static_assert(std::is_trivially_copyable_v<Item>);
    const uint64_t count = get<uint64_t>();
    if (count > (bytes_.size() - at_) / sizeof(Item))
      throw std::invalid_argument("the image ends early");
    const Item *const items = reinterpret_cast<const Item *>(take(count * sizeof(Item)));
    if (reinterpret_cast<uintptr_t>(items) % alignof(Item) == 0) {
      array.assign(items, items + count);
    } else {
      array.resize(count);
      std::memcpy(array.data(), items, count * sizeof(Item));
    }
    at_ += std::min((8 - at_ % 8) % 8, bytes_.size() - at_);
  }
  bool at_end() const { return at_ == bytes_.size(); }

private:
  const char *take(size_t count) {
    if (count > bytes_.size() - at_)
      throw std::invalid_argument("the image ends early");
    const char *const place = bytes_.data() + at_;
    at_ += count;
    return place;
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

} // namespace bpe
