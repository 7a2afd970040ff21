// The merge loop:
//
//   list the most frequent pairs and the offsets of each
//   until there are enough entries:
//     pair = the pair with the highest count; if none is listed: compact the slots, list the next pairs
//     for each offset of the pair that still holds it:
//       replace the two IDs by the merged one
//       sum up the count per left and per right neighbour
//     for each neighbour: subtract its pair with a part, add its pair with the merged entry
//     for each replaced offset: append it to the lists of the two new pairs
//
// Beyond that:
// 1. Sums are arrays indexed by the neighbour's ID, cleared with the list of touched IDs, so an occurrence
//    costs no search. The cost of a merge is proportional to its occurrences, not to the corpus.
// 2. Lists may hold offsets that other merges have changed; the slots show that (merge_slots.hpp).
// 3. Only pairs that can come up soon are listed, and rare ones are not even counted (pair_index.hpp).
// 4. IDs have 16 bits and offsets 32 where they fit.
// 5. Threads share the passes over all slots. The merges themselves, one after the other, are too short.
#include "train/trainer.hpp"

#include "train/entry_table.hpp"
#include "train/merge_slots.hpp"
#include "train/pair_index.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace bpe {
namespace {

constexpr uint64_t symbols_for_threads = 1 << 16; // of pretokens; below this, no pass is long enough
constexpr unsigned most_threads = 64;             // each takes some megabytes

// The number of tracked pairs: several times the number of remaining merges, so that pairs are hardly ever
// forgotten.
uint64_t max_tracked_pairs_for(uint64_t new_entries) {
  return std::max<uint64_t>(1 << 16, 8 * new_entries);
}

class Ticker {
public:
  explicit Ticker(const TrainingProgress &progress) : progress_(progress) {}
  void tick(uint64_t entries) {
    auto now = std::chrono::steady_clock::now();
    if (!progress_ || now < next_)
      return;
    next_ = now + std::chrono::milliseconds(100);
    progress_(entries);
  }

private:
  const TrainingProgress &progress_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

// Sums over the entries on one side of the merged pair; index: the neighbour's ID.
template <class Id, class Place> struct NeighbourSums {
  struct Neighbour {
    uint64_t count = 0; // of the new pair with it
    uint64_t next = 0;  // where the next offset of that pair is written, or no_list
    Place places = 0;
  };
  std::vector<Neighbour> neighbours;
  std::vector<Id> touched;
  void add(Id id, uint64_t count) {
    Neighbour &neighbour = neighbours[id];
    if (neighbour.places++ == 0)
      touched.push_back(id);
    neighbour.count += count;
  }
  void clear() {
    for (Id id : touched)
      neighbours[id] = {};
    touched.clear();
  }
};

template <class Id, class Place> class Trainer {
public:
  Trainer(const PretokenView &pretokens, uint64_t slots, const TrainingOptions &options,
          const TrainingProgress &progress, ThreadTeam &team)
      : options_(options), slots_(first_slots(pretokens, slots, options)),
        entries_(options_, sizeof(Place) + sizeof(Merge) + 2 * sizeof(typename Side::Neighbour)),
        index_(slots, pretokens.ids == nullptr, std::max<uint64_t>(1, options.min_frequency),
               options.max_tracked_pairs ? options.max_tracked_pairs
                                         : max_tracked_pairs_for(options.new_entries),
               options_.limit),
        ticker_(progress), team_(team) {
    lengths_.assign(entries_.size(), 1);
    left_.neighbours.resize(entries_.size());
    right_.neighbours.resize(entries_.size());
  }

  std::vector<Merge> run() {
    auto pause = [&] { ticker_.tick(merges_.size()); };
    auto allowed = [&](Id left, Id right) { return entries_.is_allowed(left, right); };
    auto list = [&](uint64_t wanted) {
      index_.list(slots_, entries_.size(), wanted, slots_.size() / 5 * 3, allowed, less(), pause, team_);
    };
    if (options_.new_entries == 0)
      return {};
    list(options_.first_pairs);
    while (merges_.size() < options_.new_entries) {
      if (auto best = index_.best(less())) {
        if (!entries_.is_made(Keys::left(best->key), Keys::right(best->key)))
          merge(*best);
      } else if (index_.has_more()) {
        slots_.compact(lengths_, team_);
        std::fill(lengths_.begin(), lengths_.end(), 1);
        // Enough for all remaining merges, since new pairs replace those that fall below. With fewer, more
        // listing passes are needed, which cost more than offsets that are listed and never used.
        list((options_.new_entries - merges_.size()) * 2);
      } else {
        break;
      }
      pause();
    }
    return std::move(merges_);
  }

private:
  using Index = PairIndex<Id, Place>;
  using Keys = PairKey<Id>;
  using Waiting = typename Index::Waiting;
  using Side = NeighbourSums<Id, Place>;
  struct Occurrence {
    Id left, right; // the neighbours at the time of replacement
    Place place;
  };
  static constexpr uint64_t no_list = Index::no_list;
  // How far ahead in a list slots are prefetched: about 40 cache misses in flight or complete.
  static constexpr size_t prefetch_places = 40;

  static MergeSlots<Id, Place> first_slots(const PretokenView &pretokens, uint64_t slots,
                                           const TrainingOptions &options) {
    if (pretokens.ids)
      return {pretokens, slots, [&](uint64_t at) { return static_cast<Id>(pretokens.ids[at] + 1); }};
    std::array<Id, 256> id_of_byte{}; // 0 for bytes that no pretoken contains
    for (size_t i = 0; i < options.first_entries.size(); i++)
      if (const std::string &entry = options.first_entries[i]; entry.size() == 1)
        id_of_byte[static_cast<uint8_t>(entry[0])] = static_cast<Id>(i + 1);
    return {pretokens, slots, [&](uint64_t at) { return id_of_byte[pretokens.bytes[at]]; }};
  }

  // The order of the queue: by count, then by the tie rule.
  auto less() const {
    return [this](const Waiting &a, const Waiting &b) {
      if (a.count != b.count)
        return a.count < b.count;
      return entries_.loses_tie(a.key, b.key);
    };
  }

  void merge(const Waiting &pair) {
    const Id a = Keys::left(pair.key), b = Keys::right(pair.key);
    merges_.push_back({a - 1u, b - 1u, pair.count});
    const Id merged = entries_.add(a, b);
    lengths_.push_back(lengths_[a] + lengths_[b]);
    left_.neighbours.emplace_back();
    right_.neighbours.emplace_back();
    reserve_occurrences(pair);
    replace(pair, a, b, merged);
    if (add_pairs(pair, a, b, merged))
      write_lists();
    left_.clear();
    right_.clear();
    index_.lists_written();
  }

  // Reserve memory for the occurrences of a pair, which share no slots. All of it is mapped, since a later
  // merge may write the rest.
  void reserve_occurrences(const Waiting &pair) {
    const Place *list = index_.arena() + pair.list_start;
    const uint64_t size = pair.list_size;
    const uint64_t most = size == 0 ? 0 : std::min<uint64_t>(size, (list[size - 1] - list[0]) / 2 + 1);
    const size_t bytes = most * sizeof(Occurrence), now = occurrences_.bytes();
    if (bytes <= now)
      return;
    const size_t grown = std::max(bytes, now + now / 8);
    options_.limit.expect(grown - now);
    occurrences_.resize(grown);
    occurrences_.map(now, grown);
  }

  // Replace the pair at the offsets that still hold it, and sum up the neighbours.
  void replace(const Waiting &pair, Id a, Id b, Id merged) {
    const Place *const list = index_.arena() + pair.list_start;
    Id *const ids = slots_.ids();
    const size_t a_slots = lengths_[a], merged_slots = lengths_[merged], size = pair.list_size;
    auto *next = static_cast<Occurrence *>(occurrences_.data());
    typename MergeSlots<Id, Place>::Counts counts(slots_);
    after_merged_ = {};
    for (size_t i = 0; i < size; i++) {
      if (i + prefetch_places < size)
        __builtin_prefetch(ids + list[i + prefetch_places], 1);
      const Place at = list[i];
      if (ids[at] != a || ids[at + a_slots] != b)
        continue; // stale
      const uint64_t count = counts.at(at);
      const Id before = ids[at - 1], after = ids[at + merged_slots];
      ids[at + a_slots] = MergeSlots<Id, Place>::dead;
      ids[at] = ids[at + merged_slots - 1] = merged;
      left_.add(before, count);
      right_.add(after, count);
      if (before == merged) {
        after_merged_.count += count;
        after_merged_.places++;
      }
      *next++ = {before, after, at};
    }
    occurrence_count_ = static_cast<size_t>(next - static_cast<Occurrence *>(occurrences_.data()));
  }

  // Write the lists of the new pairs. The list of the merged pair has been read, so its memory may be
  // overwritten.
  void write_lists() {
    Place *const arena = index_.arena();
    const auto *occurrences = static_cast<const Occurrence *>(occurrences_.data());
    for (size_t i = 0; i < occurrence_count_; i++) {
      const Occurrence &occurrence = occurrences[i];
      uint64_t &left_next = left_.neighbours[occurrence.left].next;
      if (left_next != no_list)
        arena[left_next++] = static_cast<Place>(occurrence.place - lengths_[occurrence.left]);
      uint64_t &right_next = right_.neighbours[occurrence.right].next;
      if (right_next != no_list)
        arena[right_next++] = occurrence.place;
    }
  }

  // Subtract the counts of the replaced pairs and add the new pairs. Returns true if any of them has a list
  // to write.
  //
  // In "abab", the first occurrence has a as its right neighbour, which the second occurrence then replaces:
  // its left neighbour is the merged entry. So (merged, a) was counted once too often for each such offset,
  // and the pair (b, a) between the two was already subtracted as a right neighbour.
  bool add_pairs(const Waiting &pair, Id a, Id b, Id merged) {
    for (Id left : left_.touched) {
      index_.prefetch(Keys::of(left, a));
      index_.prefetch(Keys::of(left, merged));
    }
    for (Id right : right_.touched) {
      index_.prefetch(Keys::of(b, right));
      index_.prefetch(Keys::of(merged, right));
    }
    uint64_t room = pair.list_start, room_stop = pair.list_start + pair.list_size;
    bool any = false;
    auto add = [&](Id left, Id right, typename Side::Neighbour &neighbour, uint64_t count, Place places) {
      if (entries_.is_allowed(left, right))
        neighbour.next =
            index_.add(Keys::of(left, right), count, places, neighbour.places, room, room_stop, less());
      any |= neighbour.next != no_list;
    };
    for (Id left : left_.touched) {
      auto &neighbour = left_.neighbours[left];
      neighbour.next = no_list;
      if (left == MergeSlots<Id, Place>::separator)
        continue;
      if (left != merged)
        index_.subtract(Keys::of(left, a), neighbour.count, neighbour.places);
      add(left, merged, neighbour, neighbour.count, neighbour.places);
    }
    for (Id right : right_.touched) {
      auto &neighbour = right_.neighbours[right];
      neighbour.next = no_list;
      if (right == MergeSlots<Id, Place>::separator)
        continue;
      index_.subtract(Keys::of(b, right), neighbour.count, neighbour.places);
      const bool taken = right == a; // some of these occurrences were replaced
      add(merged, right, neighbour, neighbour.count - (taken ? after_merged_.count : 0),
          neighbour.places - (taken ? after_merged_.places : 0));
    }
    return any;
  }

  const TrainingOptions &options_;
  MergeSlots<Id, Place> slots_;
  EntryTable<Id> entries_;
  Index index_;
  Ticker ticker_;
  std::vector<Place> lengths_; // number of slots per ID since the last compact()
  std::vector<Merge> merges_;
  ThreadTeam &team_;
  // Of the current merge: its occurrences, its neighbours, and the occurrences that directly follow another
  // one ("abab"), see add_pairs.
  PageMemory occurrences_{0, PageMemory::Pages::small};
  size_t occurrence_count_ = 0;
  Side left_, right_;
  typename Side::Neighbour after_merged_;
};

} // namespace

std::vector<Merge> train_merges(const PretokenView &pretokens, const TrainingOptions &options,
                                const TrainingProgress &progress) {
  const uint64_t symbols = pretokens.size == 0 ? 0 : pretokens.ends[pretokens.size - 1];
  ThreadTeam team(symbols < symbols_for_threads ? 1 : std::clamp(options.threads, 1u, most_threads));
  const uint64_t slots = slots_for(pretokens);
  const uint64_t first_entries = options.first_entries.size();
  if (options.new_entries > (uint64_t{1} << 31) - first_entries)
    throw std::invalid_argument("new_entries is " + std::to_string(options.new_entries) +
                                "; ids must stay below 2^31");
  // IDs of 16 bits must leave room for the separator and `dead`. A merge takes a slot, so `slots` bounds
  // both.
  uint64_t ids = 1 + first_entries + std::min(options.new_entries, slots);
  const auto train = [&]<class Id, class Place>(Id, Place) {
    // IDs, and the run in which each block of slots starts.
    options.limit.expect(slots * sizeof(Id) + slots / 16 + (uint64_t{1} << 20));
    return Trainer<Id, Place>(pretokens, slots, options, progress, team).run();
  };
  if (options.wide || slots >= std::numeric_limits<uint32_t>::max())
    return train(uint32_t{}, uint64_t{});
  if (ids >= std::numeric_limits<uint16_t>::max())
    return train(uint32_t{}, uint32_t{});
  return train(uint16_t{}, uint32_t{});
}

} // namespace bpe
