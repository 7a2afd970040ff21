// A merge reads the list of the pair, replaces each occurrence that is still there, and sums what its left
// and right neighbours gain and lose in arrays indexed by neighbour. It then does one table operation per
// distinct neighbour and writes the lists of the new pairs. The cost is proportional to the occurrences and
// distinct neighbours, not to the corpus.
#include "train/trainer.hpp"

#include "train/entry_table.hpp"
#include "train/merge_part.hpp"
#include "train/merge_slots.hpp"
#include "train/pair_index.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace bpe {
namespace {

// For fewer offsets, one thread is faster than waking the others.
constexpr uint64_t places_for_threads = 1 << 14;
constexpr uint64_t symbols_for_threads = 1 << 16; // of pretokens; below this, no list is long enough
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

template <class Id, class Place> class Trainer {
public:
  Trainer(SlotPlan &plan, const PretokenView &pretokens, const TrainingOptions &options,
          const TrainingProgress &progress, ThreadTeam &team)
      : options_(options), slots_(first_slots(plan, pretokens, options, team)),
        entries_(options_,
                 sizeof(Place) + sizeof(Merge) + 2 * team.size() * sizeof(typename Side::Neighbour)),
        index_(plan.slots(), pretokens.ids == nullptr, std::max<uint64_t>(1, options.min_frequency),
               options.max_tracked_pairs ? options.max_tracked_pairs
                                         : max_tracked_pairs_for(options.new_entries),
               options_.limit),
        ticker_(progress), team_(team), parts_(team.size()) {
    lengths_.assign(entries_.size(), 1);
    for (Part &part : parts_) {
      part.left.neighbours.resize(entries_.size());
      part.right.neighbours.resize(entries_.size());
    }
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
  using Part = MergePart<Id, Place>;
  using Side = NeighbourSums<Id, Place>;
  static constexpr uint64_t no_list = Index::no_list;

  static MergeSlots<Id, Place> first_slots(SlotPlan &plan, const PretokenView &pretokens,
                                           const TrainingOptions &options, ThreadTeam &team) {
    if (pretokens.ids)
      return {plan, [&](uint64_t at) { return static_cast<Id>(pretokens.ids[at] + 1); }, team};
    std::array<Id, 256> id_of_byte{}; // 0 for bytes that no pretoken contains
    for (size_t i = 0; i < options.first_entries.size(); i++)
      if (const std::string &entry = options.first_entries[i]; entry.size() == 1)
        id_of_byte[static_cast<uint8_t>(entry[0])] = static_cast<Id>(i + 1);
    return {plan, [&](uint64_t at) { return id_of_byte[pretokens.bytes[at]]; }, team};
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
    Id a = Keys::left(pair.key), b = Keys::right(pair.key);
    merges_.push_back({a - 1u, b - 1u, pair.count});
    const Id merged = entries_.add(a, b);
    lengths_.push_back(lengths_[a] + lengths_[b]);
    for (Part &part : parts_) {
      part.left.neighbours.emplace_back();
      part.right.neighbours.emplace_back();
    }
    const bool shared = team_.size() > 1 && pair.list_size >= places_for_threads;
    const Place *list = index_.arena() + pair.list_start;
    cuts_.clear(); // before the slots change
    if (shared) {
      for (unsigned thread = 0; thread <= team_.size(); thread++)
        cuts_.push_back(cut(pair, thread));
    } else {
      cuts_.insert(cuts_.end(), {0, pair.list_size});
    }
    make_room(list);
    if (shared) {
      team_.run([&](unsigned thread) {
        parts_[thread].replace(slots_, lengths_, list + cuts_[thread], list + cuts_[thread + 1], a, b,
                               merged);
      });
      for (size_t thread = 1; thread < parts_.size(); thread++) {
        parts_[0].left.include(parts_[thread].left);
        parts_[0].right.include(parts_[thread].right);
        parts_[0].after_merged += parts_[thread].after_merged;
        parts_[0].after_merged_places += parts_[thread].after_merged_places;
      }
    } else {
      parts_[0].replace(slots_, lengths_, list, list + pair.list_size, a, b, merged);
    }
    if (add_pairs(pair, a, b, merged)) {
      if (shared) {
        for (size_t thread = 1; thread < parts_.size(); thread++) {
          parts_[thread].left.follow(parts_[0].left);
          parts_[thread].right.follow(parts_[0].right);
        }
        team_.run([&](unsigned thread) { parts_[thread].write_lists(index_.arena(), lengths_); });
      } else {
        parts_[0].write_lists(index_.arena(), lengths_);
      }
    }
    for (size_t thread = 0; thread < (shared ? parts_.size() : 1); thread++) {
      parts_[thread].left.clear();
      parts_[thread].right.clear();
    }
    index_.lists_written();
  }

  // Make room for the occurrences of a merge, with the maximum number of offsets for each part: occurrences
  // of a pair share no slots. All of it is mapped, since a later merge may write the rest.
  void make_room(const Place *list) {
    const auto most_of = [&](size_t part) -> uint64_t {
      const size_t start = cuts_[part], stop = cuts_[part + 1];
      return start == stop ? 0 : std::min<uint64_t>(stop - start, (list[stop - 1] - list[start]) / 2 + 1);
    };
    uint64_t needed = 0;
    for (size_t part = 0; part + 1 < cuts_.size(); part++)
      needed += most_of(part);
    const size_t bytes = needed * sizeof(typename Part::Occurrence), now = occurrences_.bytes();
    if (bytes > now) {
      const size_t grown = std::max(bytes, now + now / 8);
      options_.limit.expect(grown - now);
      occurrences_.resize(grown);
      occurrences_.map(now, grown);
    }
    auto *room = static_cast<typename Part::Occurrence *>(occurrences_.data());
    for (size_t part = 0; part + 1 < cuts_.size(); part++) {
      parts_[part].occurrences = room;
      room += most_of(part);
    }
  }

  // Return where the part of a thread starts in the list: at the first offset of a pretoken, so that no two
  // threads read the same slots.
  size_t cut(const Waiting &pair, unsigned thread) const {
    const Place *list = index_.arena() + pair.list_start;
    size_t at = static_cast<size_t>(static_cast<uint64_t>(pair.list_size) * thread / team_.size());
    if (at == 0 || at == pair.list_size)
      return at;
    // Find its end only once: a pretoken may have megabytes and contain all offsets.
    const uint64_t stop = slots_.pretoken_stop(list[at - 1]);
    return static_cast<size_t>(std::lower_bound(list + at, list + pair.list_size, stop) - list);
  }

  // Subtract the counts of the replaced pairs and add the new pairs. Returns true if any of them has a list
  // to write.
  //
  // In "abab", the first occurrence has a as its right neighbour, which the second occurrence then replaces:
  // its left neighbour is the merged entry. So (merged, a) was counted once too often for each such offset,
  // and the pair (b, a) between the two was already subtracted as a right neighbour.
  bool add_pairs(const Waiting &pair, Id a, Id b, Id merged) {
    Side &left_side = parts_[0].left, &right_side = parts_[0].right;
    for (Id left : left_side.touched) {
      index_.prefetch(Keys::of(left, a));
      index_.prefetch(Keys::of(left, merged));
    }
    for (Id right : right_side.touched) {
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
    for (Id left : left_side.touched) {
      auto &neighbour = left_side.neighbours[left];
      neighbour.next = no_list;
      if (left == MergeSlots<Id, Place>::separator)
        continue;
      if (left != merged)
        index_.subtract(Keys::of(left, a), neighbour.count, neighbour.places);
      add(left, merged, neighbour, neighbour.count, neighbour.places);
    }
    for (Id right : right_side.touched) {
      auto &neighbour = right_side.neighbours[right];
      neighbour.next = no_list;
      if (right == MergeSlots<Id, Place>::separator)
        continue;
      index_.subtract(Keys::of(b, right), neighbour.count, neighbour.places);
      const bool taken = right == a; // some of these occurrences were replaced
      add(merged, right, neighbour, neighbour.count - (taken ? parts_[0].after_merged : 0),
          neighbour.places - (taken ? parts_[0].after_merged_places : 0));
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
  std::vector<size_t> cuts_;                            // of the list of a merge, one part per thread
  PageMemory occurrences_{0, PageMemory::Pages::small}; // of a merge
  std::vector<Part> parts_; // one per thread; a merge with few offsets uses only the first
};

} // namespace

std::vector<Merge> train_merges(const PretokenView &pretokens, const TrainingOptions &options,
                                const TrainingProgress &progress) {
  const uint64_t symbols = pretokens.size == 0 ? 0 : pretokens.ends[pretokens.size - 1];
  ThreadTeam team(symbols < symbols_for_threads ? 1 : std::clamp(options.threads, 1u, most_threads));
  SlotPlan plan(pretokens, team);
  uint64_t slots = plan.slots();
  const uint64_t first_entries = options.first_entries.size();
  if (options.new_entries > (uint64_t{1} << 31) - first_entries)
    throw std::invalid_argument("new_entries is " + std::to_string(options.new_entries) +
                                "; ids must stay below 2^31");
  // IDs of 16 bits must leave room for the separator and `dead`. A merge takes a slot, so `slots` bounds
  // both.
  uint64_t ids = 1 + first_entries + std::min(options.new_entries, slots);
  const auto train = [&]<class Id, class Place>(Id, Place) {
    // IDs, and the run in which each block of slots starts.
    options.limit.expect(slots * sizeof(Id) + slots / 16 + (uint64_t{team.size()} << 20));
    return Trainer<Id, Place>(plan, pretokens, options, progress, team).run();
  };
  if (options.wide || slots >= std::numeric_limits<uint32_t>::max())
    return train(uint32_t{}, uint64_t{});
  if (ids >= std::numeric_limits<uint16_t>::max())
    return train(uint32_t{}, uint32_t{});
  return train(uint16_t{}, uint32_t{});
}

} // namespace bpe
