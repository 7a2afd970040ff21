// The entries of a training: the bytes of each id, which pairs may become an entry, which of two pairs is
// merged first.
//
// Ids are one higher than outside the trainer: 0 is the separator between pretokens.
#pragma once

#include "train/tracked_pairs.hpp"
#include "train/trainer.hpp"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace bpe {

template <class Id> class EntryTable {
public:
  // bytes_beside: what an entry takes in other arrays, which grow with this one. The options must outlive
  // this.
  EntryTable(const TrainingOptions &options, uint64_t bytes_beside)
      : options_(options), entry_bytes_(sizeof(std::string) + bytes_beside) {
    const std::vector<std::string> &first = options.first_entries;
    options.limit.expect((1 + first.size()) * entry_bytes_);
    bytes_.reserve(1 + first.size());
    bytes_.emplace_back();
    bytes_.insert(bytes_.end(), first.begin(), first.end());
    if (first.size() > 256 || !options.reserved.empty()) {
      taken_.insert(first.begin(), first.end());
      taken_.insert(options.reserved.begin(), options.reserved.end());
    }
  }

  size_t size() const { return bytes_.size(); } // with the separator: the id of the next entry

  // Whether the pair may become an entry: it is short enough, and its bytes are free. Without entries
  // from before no pair ever has the bytes of an entry (see trainer.hpp), and none is looked up.
  bool is_allowed(Id left, Id right) const {
    if (options_.max_token_bytes != 0 &&
        bytes_[left].size() + bytes_[right].size() > options_.max_token_bytes)
      return false;
    if (const std::string &end = options_.reserved_end;
        !end.empty() && (bytes_[left] + bytes_[right]).ends_with(end))
      return false;
    return taken_.empty() || !taken_.contains(bytes_[left] + bytes_[right]);
  }

  // Whether `a` is merged after `b`, which occurs as often.
  template <class Key> bool loses_tie(Key a, Key b) const {
    using Keys = PairKey<Id>;
    if (options_.tie_break == TieBreak::huggingface)
      return a > b;
    const int left = bytes_[Keys::left(a)].compare(bytes_[Keys::left(b)]);
    return left != 0 ? left < 0 : bytes_[Keys::right(a)] < bytes_[Keys::right(b)];
  }

  // Adds the entry of a pair; asks for its memory, and for that beside, before it is taken.
  Id add(Id left, Id right) {
    const uint64_t size = bytes_[left].size() + bytes_[right].size();
    expect(size);
    std::string bytes;
    bytes.reserve(size); // as `+` it may take twice as much on the way
    const Id id = static_cast<Id>(bytes_.size());
    bytes_.push_back(std::move(bytes.append(bytes_[left]).append(bytes_[right])));
    return id;
  }

private:
  static constexpr uint64_t expected_step = uint64_t{1} << 20; // bytes; small entries are asked for together

  void expect(uint64_t size) {
    expected_bytes_ += size;
    const uint64_t filled_bytes = std::min(entry_bytes_, owed_bytes_);
    options_.limit.settle(filled_bytes);
    owed_bytes_ -= filled_bytes;
    const bool grows = bytes_.size() == bytes_.capacity(); // as all that has an item for each entry
    if (!grows && expected_bytes_ < expected_step)
      return;
    options_.limit.expect(expected_bytes_ + (grows ? 2 * entry_bytes_ * bytes_.size() : 0));
    expected_bytes_ = 0;
    if (grows) { // room for as many more, which they fill one by one
      options_.limit.owe(entry_bytes_ * bytes_.size());
      owed_bytes_ += entry_bytes_ * bytes_.size();
    }
  }

  const TrainingOptions &options_;
  const uint64_t entry_bytes_;
  std::vector<std::string> bytes_;        // of each id
  std::unordered_set<std::string> taken_; // what no pair may become
  uint64_t expected_bytes_ = 0, owed_bytes_ = 0;
};

} // namespace bpe
