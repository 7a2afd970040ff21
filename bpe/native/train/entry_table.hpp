// The entries of a training: the bytes of each ID, which pairs may become an entry, and how ties are broken.
//
// IDs are one higher than outside the trainer: 0 is the separator between pretokens.
#pragma once

#include "train/tracked_pairs.hpp"
#include "train/trainer.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace bpe {

template <class Id> class EntryTable {
public:
  // bytes_beside: memory per entry in other arrays that grow with this one. The options must outlive this
  // object.
  EntryTable(const TrainingOptions &options, uint64_t bytes_beside)
      : options_(options), has_affix_(!options.prefix.empty() || !options.suffix.empty()),
        entry_bytes_(sizeof(std::string) + bytes_beside) {
    const std::vector<std::string> &first = options.first_entries;
    options.limit.expect((1 + first.size()) * entry_bytes_);
    bytes_.reserve(1 + first.size());
    bytes_.emplace_back();
    bytes_.insert(bytes_.end(), first.begin(), first.end());
    if (first.size() > 256 || !options.reserved.empty() || has_affix_) {
      taken_.insert(first.begin(), first.end());
      taken_.insert(options.reserved.begin(), options.reserved.end());
    }
    if (options.max_token_letters != 0) {
      letters_.reserve(1 + first.size());
      for (const std::string &entry : bytes_)
        letters_.push_back(letters_of(entry));
    }
  }

  size_t size() const { return bytes_.size(); } // including the separator: the ID of the next entry

  // Return whether the pair may become an entry: it is short enough, its bytes are not taken, and none of its
  // own letters look like the prefix or suffix. Without initial entries, a pair never has the bytes of an
  // entry (see trainer.hpp), so no look-up is needed.
  bool is_allowed(Id left, Id right) const {
    if (options_.max_token_bytes != 0 && joined_size(left, right) > options_.max_token_bytes)
      return false;
    if (options_.max_token_letters != 0 && letters_[left] + letters_[right] > options_.max_token_letters)
      return false;
    if (!has_affix_)
      return taken_.empty() || !taken_.contains(bytes_[left] + bytes_[right]);
    const std::string &prefix = options_.prefix, &suffix = options_.suffix;
    const std::string joined = this->joined(left, right);
    if (!prefix.empty() && joined.starts_with(prefix) && !continues(bytes_[left]))
      return false;
    if (!suffix.empty() && joined.ends_with(suffix) && !ends(appended(right)))
      return false;
    return !taken_.contains(joined);
  }

  // Return whether a pair that was allowed has become an entry through another pair.
  bool is_made(Id left, Id right) const { return has_affix_ && taken_.contains(joined(left, right)); }

  // Return whether `a` is merged after `b`, which has the same count.
  template <class Key> bool loses_tie(Key a, Key b) const {
    using Keys = PairKey<Id>;
    if (options_.tie_break == TieBreak::huggingface)
      return a > b;
    const int left = bytes_[Keys::left(a)].compare(bytes_[Keys::left(b)]);
    return left != 0 ? left < 0 : bytes_[Keys::right(a)] < bytes_[Keys::right(b)];
  }

  // Add the entry of a pair. Checks the limit for its memory, and for memory per entry in other arrays,
  // first.
  Id add(Id left, Id right) {
    const uint64_t size = joined_size(left, right);
    expect(has_affix_ ? 2 * size + sizeof(std::string) : size);
    const Id id = static_cast<Id>(bytes_.size());
    bytes_.push_back(joined(left, right));
    if (has_affix_)
      taken_.insert(bytes_.back());
    if (options_.max_token_letters != 0)
      letters_.push_back(letters_[left] + letters_[right]);
    return id;
  }

private:
  bool continues(std::string_view entry) const {
    return entry.size() > options_.prefix.size() && entry.starts_with(options_.prefix);
  }
  bool ends(std::string_view entry) const {
    return entry.size() > options_.suffix.size() && entry.ends_with(options_.suffix);
  }
  // Return the bytes of the right part that a merge appends.
  std::string_view appended(Id right) const {
    const std::string_view entry = bytes_[right];
    return entry.substr(std::min(options_.prefix.size(), entry.size()));
  }
  uint64_t joined_size(Id left, Id right) const { return bytes_[left].size() + appended(right).size(); }
  std::string joined(Id left, Id right) const {
    std::string bytes;
    bytes.reserve(joined_size(left, right)); // `+` may allocate twice as much in between
    bytes.append(bytes_[left]).append(appended(right));
    return bytes; // not the reference that append returns: that would copy
  }
  uint64_t letters_of(std::string_view entry) const {
    if (continues(entry))
      entry.remove_prefix(options_.prefix.size());
    if (ends(entry))
      entry.remove_suffix(options_.suffix.size());
    if (!options_.letters_are_characters)
      return entry.size();
    return static_cast<uint64_t>(std::count_if(
        entry.begin(), entry.end(), [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }));
  }

  static constexpr uint64_t expected_step = uint64_t{1} << 20; // bytes; small entries are checked together

  void expect(uint64_t size) {
    expected_bytes_ += size;
    const uint64_t filled_bytes = std::min(entry_bytes_, owed_bytes_);
    options_.limit.settle(filled_bytes);
    owed_bytes_ -= filled_bytes;
    const bool grows = bytes_.size() == bytes_.capacity(); // like all arrays with an item per entry
    if (!grows && expected_bytes_ < expected_step)
      return;
    options_.limit.expect(expected_bytes_ + (grows ? 2 * entry_bytes_ * bytes_.size() : 0));
    expected_bytes_ = 0;
    if (grows) { // room for as many more, which are added one by one
      options_.limit.owe(entry_bytes_ * bytes_.size());
      owed_bytes_ += entry_bytes_ * bytes_.size();
    }
  }

  const TrainingOptions &options_;
  const bool has_affix_;
  const uint64_t entry_bytes_;
  std::vector<std::string> bytes_;        // of each ID
  std::vector<uint64_t> letters_;         // of each ID, if their number is limited
  std::unordered_set<std::string> taken_; // byte strings that no pair may become
  uint64_t expected_bytes_ = 0, owed_bytes_ = 0;
};

} // namespace bpe
