// 1. List the pairs of characters that a merge joins (Vocabulary::joined_characters).
// 2. Give each character an initial class: letters, digits, each other ASCII character, other blocks.
// 3. While there are more than max_classes, merge the two classes that add the fewest joined pairs.
// 4. Build the automaton: the state is the row of classes that the previous character joins.
#include "vocabulary/merge_cuts.hpp"

#include "merge/merge_by_heap.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace bpe {

namespace {

constexpr size_t max_classes = 60;
constexpr size_t max_run = 256; // characters of a token
constexpr uint32_t code_points = 0x110000;
constexpr uint8_t alone = 0; // the class of characters that no merge joins

struct Joined {
  uint32_t left, right; // code points
};

// Characters with the same key share their initial class.
uint32_t first_key(uint32_t c) {
  if (c < 0x80)
    return (c | 0x20) - 'a' < 26 ? 'a' : c - '0' < 10 ? '0' : c;
  if ((c >= 0x3000 && c < 0x3040) || (c >= 0xFF00 && c < 0x10000))
    return code_points + c; // punctuation that cuts ideographs
  // Ideographs, Hangul syllables, and everything beyond the first plane are large blocks.
  const uint32_t start = c >= 0x10000                ? 0x10000
                         : c >= 0xAC00 && c < 0xD800 ? 0xAC00
                         : c >= 0x3100 && c < 0xAC00 ? 0x3100
                                                     : c;
  return 0x80 + start / 256;
}

class Classes {
public:
  explicit Classes(const std::vector<Joined> &joined) : of_(code_points, alone) {
    std::vector<uint8_t> sides(code_points); // 1: a left part, 2: a right part
    for (const auto &[left, right] : joined) {
      sides[left] |= 1;
      sides[right] |= 2;
    }
    std::map<std::pair<uint32_t, uint8_t>, uint16_t> numbers;
    for (uint32_t c = 0; c < code_points; ++c)
      if (sides[c] != 0) {
        const uint8_t side = c < 0x80 ? uint8_t{0} : sides[c];
        const uint16_t next = static_cast<uint16_t>(numbers.size() + 1);
        of_[c] = numbers.try_emplace({first_key(c), side}, next).first->second;
      }
    count_ = numbers.size() + 1;
    joins_.assign(count_ * count_, 0);
    weights_.assign(count_, 1);
    for (const auto &[left, right] : joined) {
      joins_[of_[left] * count_ + of_[right]] = 1;
      ++weights_[of_[left]];
      ++weights_[of_[right]];
    }
  }

  uint16_t operator[](uint32_t c) const { return of_[c]; }
  size_t count() const { return count_; }
  bool joins(size_t left, size_t right) const { return joins_[left * count_ + right] != 0; }
  void join(size_t left, size_t right) { joins_[left * count_ + right] = 1; }

  // kept: classes that are not merged with others.
  void reduce(const std::vector<uint16_t> &kept);

private:
  // Return the weight of the pairs that join additionally if the two classes are merged.
  float more_joins(size_t a, size_t b) const;

  std::vector<uint16_t> of_; // by code point
  size_t count_;
  std::vector<uint8_t> joins_; // [left * count_ + right]
  std::vector<float> weights_; // how often a class is in a pair
};

float Classes::more_joins(size_t a, size_t b) const {
  float only_a = 0, only_b = 0;
  for (size_t k = 0; k < count_; ++k) {
    const int right = joins_[a * count_ + k] - joins_[b * count_ + k];
    const int left = joins_[k * count_ + a] - joins_[k * count_ + b];
    only_a += weights_[k] * static_cast<float>((right > 0) + (left > 0));
    only_b += weights_[k] * static_cast<float>((right < 0) + (left < 0));
  }
  return only_a * weights_[b] + only_b * weights_[a];
}

void Classes::reduce(const std::vector<uint16_t> &kept) {
  std::vector<size_t> open; // classes that may be merged
  for (size_t number = 0; number < count_; ++number)
    if (std::find(kept.begin(), kept.end(), number) == kept.end())
      open.push_back(number);
  std::vector<float> cost(count_ * count_); // [smaller * count_ + larger]
  const auto price = [&](size_t a, size_t b) -> float & {
    return cost[std::min(a, b) * count_ + std::max(a, b)];
  };
  for (const size_t a : open)
    for (const size_t b : open)
      if (a < b)
        price(a, b) = more_joins(a, b);
  std::vector<uint16_t> new_class(count_);
  for (size_t number = 0; number < count_; ++number)
    new_class[number] = static_cast<uint16_t>(number);
  while (open.size() + kept.size() > max_classes) {
    size_t one = open[0], gone = open[1];
    for (const size_t a : open)
      for (const size_t b : open)
        if (a < b && price(a, b) < price(one, gone))
          std::tie(one, gone) = std::pair(a, b);
    for (size_t k = 0; k < count_; ++k)
      joins_[one * count_ + k] |= std::exchange(joins_[gone * count_ + k], uint8_t{0});
    for (size_t k = 0; k < count_; ++k) // after all rows, which may have added a join of `gone` with itself
      joins_[k * count_ + one] |= std::exchange(joins_[k * count_ + gone], uint8_t{0});
    weights_[one] += std::exchange(weights_[gone], 0.0f);
    std::replace(new_class.begin(), new_class.end(), static_cast<uint16_t>(gone), static_cast<uint16_t>(one));
    open.erase(std::find(open.begin(), open.end(), gone));
    for (const size_t other : open)
      if (other != one)
        price(one, other) = more_joins(one, other);
  }
  // Number the remaining classes.
  std::map<uint16_t, uint16_t> numbers;
  for (uint16_t &number : new_class)
    number = numbers.try_emplace(number, static_cast<uint16_t>(numbers.size())).first->second;
  std::vector<uint8_t> joins(numbers.size() * numbers.size());
  for (const auto &[left, new_left] : numbers)
    for (const auto &[right, new_right] : numbers)
      joins[new_left * numbers.size() + new_right] = joins_[left * count_ + right];
  joins_ = std::move(joins);
  count_ = numbers.size();
  for (uint16_t &number : of_)
    number = new_class[number];
}

// The state is the set of classes that the previous character joins, and whether a piece started with it.
std::shared_ptr<const Automaton> automaton_of(const Classes &classes) {
  const size_t kinds = classes.count();
  std::map<std::vector<bool>, uint8_t> rows{{std::vector<bool>(kinds), 0}};
  std::vector<uint8_t> row_of(kinds);
  for (size_t left = 0; left < kinds; ++left) {
    std::vector<bool> row(kinds);
    for (size_t right = 0; right < kinds; ++right)
      row[right] = classes.joins(left, right);
    row_of[left] = rows.try_emplace(std::move(row), static_cast<uint8_t>(rows.size())).first->second;
  }
  auto made = std::make_shared<Automaton>();
  // States [0, count) follow the first character of a piece, [count, 2 * count) any other character.
  const size_t count = rows.size();
  made->before_end = made->both_end = 0;
  made->here_end = static_cast<unsigned>(count);
  made->silent_end = static_cast<unsigned>(2 * count);
  made->initial = static_cast<uint8_t>(count); // row 0 joins nothing
  made->then.assign((kinds + 1) * Automaton::row, 0);
  made->borders.assign((kinds + 1) * Automaton::row, Automaton::depends);
  for (const auto &[row, state] : rows)
    for (const size_t from : {size_t{state}, state + count}) {
      for (size_t kind = 0; kind < kinds; ++kind)
        made->then[kind * Automaton::row + from] =
            static_cast<uint8_t>(row_of[kind] + (row[kind] ? count : 0));
      made->then[kinds * Automaton::row + from] = static_cast<uint8_t>(state + count); // within a character
    }
  for (size_t left = 0; left < kinds; ++left)
    for (size_t right = 0; right < kinds; ++right)
      made->borders[left * Automaton::row + right] =
          classes.joins(left, right) ? Automaton::inside : Automaton::cut;
  made->at_end.assign(2 * count, Automaton::Actions{});
  made->oldest_pending.assign(2 * count, {0, Automaton::nothing, false});
  made->drops = false;
  made->by_joins = true;
  std::map<CharacterClasses::Page, uint16_t> pages;
  for (uint32_t start = 0; start < code_points; start += 64) {
    CharacterClasses::Page page;
    for (uint32_t i = 0; i < 64; ++i)
      page[i] = static_cast<uint8_t>(classes[start + i]);
    const auto [known, is_new] = pages.try_emplace(page, static_cast<uint16_t>(pages.size()));
    if (is_new)
      made->classes.pages.push_back(page);
    made->classes.page_of.push_back(known->second);
  }
  made->complete(kinds + 1);
  return made;
}

// Return the lengths of the tokens that repeat one character. Empty if a token mixes that character with
// others or is not found by its bytes alone.
std::map<size_t, uint32_t> runs_of(char character, const AddedTokens &tokens) {
  const auto has_it = [&](const SpecialToken &token) {
    return token.text.find(character) != std::string::npos;
  };
  std::map<size_t, uint32_t> id_of;
  if (std::ranges::any_of(tokens.normalized().tokens(), has_it))
    return {};
  for (const SpecialToken &token : tokens.raw().tokens()) {
    if (!has_it(token))
      continue;
    if (token.text.find_first_not_of(character) != std::string::npos || token.lstrip || token.rstrip ||
        token.single_word || token.text.size() > max_run)
      return {};
    id_of[token.text.size()] = token.value;
  }
  return id_of;
}

// Return whether merges split each shorter run like the tokens do: longest token first.
bool merges_make_runs(const Vocabulary &vocabulary, char character, const std::map<size_t, uint32_t> &id_of) {
  HeapMerge heap;
  for (size_t size = 1; size < id_of.rbegin()->first; ++size) {
    std::vector<uint32_t> wanted;
    for (size_t left = size; left > 0; left -= std::prev(id_of.upper_bound(left))->first) {
      if (id_of.begin()->first > left)
        return false;
      wanted.push_back(std::prev(id_of.upper_bound(left))->second);
    }
    const std::string run(size, character);
    std::vector<uint32_t> ids =
        heap.merge(vocabulary, reinterpret_cast<const uint8_t *>(run.data()), run.size());
    const size_t count = ids.size();
    ids.resize(size);
    ids.resize(vocabulary.to_ids(ids.data(), count));
    if (ids != wanted)
      return false;
  }
  return true;
}

} // namespace

MergeCuts::MergeCuts(const Vocabulary &vocabulary, const AddedTokens &all,
                     const std::vector<Normalizer::Kind> &steps) {
  std::vector<Joined> joined;
  for (const uint64_t pair : vocabulary.joined_characters())
    joined.push_back({static_cast<uint32_t>(pair >> 32), static_cast<uint32_t>(pair)});
  Classes classes(joined);
  std::vector<uint16_t> kept{alone};
  std::vector<SpecialToken> to_find = all.raw().tokens();
  for (const char character : {'\n', '\r', '\t'}) {
    const auto code_point = static_cast<uint32_t>(character);
    const auto changes = [&](const Normalizer::Kind &step) {
      return step.name != "replace" || step.first.find(character) != std::string::npos;
    };
    const auto joins_another = [&](const Joined &pair) {
      return (pair.left == code_point) != (pair.right == code_point);
    };
    if (std::any_of(steps.begin(), steps.end(), changes) ||
        std::any_of(joined.begin(), joined.end(), joins_another))
      continue;
    const std::map<size_t, uint32_t> id_of = runs_of(character, all);
    if (id_of.size() < 2 || !merges_make_runs(vocabulary, character, id_of))
      continue;
    // Keep the longest token, which cuts longer runs.
    std::erase_if(to_find, [&](const SpecialToken &token) {
      return token.text[0] == character && token.text.size() < id_of.rbegin()->first;
    });
    if (classes[code_point] != alone)
      kept.push_back(classes[code_point]);
  }
  classes.reduce(kept);
  if (vocabulary.fuses_unknown())
    classes.join(alone, alone);
  automaton = automaton_of(classes);
  tokens = {all.contents(), std::move(to_find), all.normalized().tokens()};
}

} // namespace bpe
