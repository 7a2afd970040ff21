// Queries about the entries and merges of a file, and the selection of entries for encoding text.
#include "vocabulary/entry_file.hpp"

#include "text/utf8.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <unordered_map>

namespace bpe {

namespace {

// Return whether merging may start with the entry: a byte, or a character with optional prefix and suffix.
bool may_start_merging(const std::optional<TextRules> &rules, std::string_view entry) {
  if (!rules)
    return entry.size() == 1;
  const auto is_one = [&](std::string_view text) {
    const uint8_t *const bytes = bytes_of(text);
    return text.size() <= 1 ||
           (!rules->byte_level && read_char(bytes, bytes + text.size()).length == text.size());
  };
  const auto is_one_with_suffix = [&](std::string_view text) {
    return is_one(text) ||
           (text.ends_with(rules->suffix) && is_one(text.substr(0, text.size() - rules->suffix.size())));
  };
  return is_one_with_suffix(entry) ||
         (entry.starts_with(rules->prefix) && is_one_with_suffix(entry.substr(rules->prefix.size()))) ||
         (rules->byte_fallback && entry.size() == 6 && entry.starts_with("<0x"));
}

} // namespace

EntryFile EntryFile::from_arrays(EntryList entries, const std::optional<std::vector<uint32_t>> &merges) {
  const auto require = [](bool holds) {
    if (!holds)
      throw std::invalid_argument("entries and merges: arrays do not match");
  };
  require(entries.ids.size() == entries.ends.size() && std::ranges::is_sorted(entries.ends) &&
          (entries.ends.empty() ? 0 : entries.ends.back()) == entries.bytes.size());
  for (const uint32_t id : entries.ids)
    require(id <= INT32_MAX);
  EntryFile file;
  file.has_merges_ = merges.has_value();
  for (const uint32_t part : merges.value_or(std::vector<uint32_t>())) {
    require(part < entries.size());
    file.merge_bytes_ += entries[part];
    file.merge_ends_.push_back(file.merge_bytes_.size());
  }
  require(file.merge_ends_.size() % 2 == 0);
  file.entries_ = std::move(entries);
  return file;
}

void EntryFile::add_entry(uint32_t id, std::string_view bytes) {
  if (bytes.empty()) {
    texts_.emplace_back("", id);
    return;
  }
  entries_.bytes += bytes;
  entries_.add(id);
}

void EntryFile::add_merge(std::string_view left, std::string_view right) {
  for (const std::string_view part : {left, right}) {
    merge_bytes_ += part;
    merge_ends_.push_back(merge_bytes_.size());
  }
}

int64_t EntryFile::max_id() const {
  int64_t highest = -1;
  for (const uint32_t id : entries_.ids)
    highest = std::max<int64_t>(highest, id);
  for (const auto &[text, id] : texts_)
    highest = std::max<int64_t>(highest, id);
  return highest;
}

bool EntryFile::has_id(int64_t id) const {
  return std::find(entries_.ids.begin(), entries_.ids.end(), id) != entries_.ids.end() ||
         std::any_of(texts_.begin(), texts_.end(), [&](const auto &text) { return text.second == id; });
}

std::vector<std::optional<uint32_t>> EntryFile::find(const std::vector<std::string_view> &wanted) const {
  std::unordered_map<std::string_view, std::optional<uint32_t>> ids;
  for (const std::string_view entry : wanted)
    ids.try_emplace(entry);
  for (size_t i = 0; !ids.empty() && i < entries_.size(); ++i)
    if (const auto found = ids.find(entries_[i]); found != ids.end())
      found->second = entries_.ids[i];
  std::vector<std::optional<uint32_t>> found;
  for (const std::string_view entry : wanted)
    found.push_back(ids[entry]);
  return found;
}

std::unordered_set<std::string_view>
EntryFile::used_by_merges(const std::unordered_set<std::string_view> &texts, size_t prefix_bytes) const {
  const auto ends_of = [](std::string_view left, std::string_view right) {
    return static_cast<uint8_t>(left.front()) << 8 | static_cast<uint8_t>(right.back());
  };
  std::vector<bool> known(65536); // by first and last byte, which most entries do not share with a text
  for (const std::string_view text : texts)
    if (!text.empty())
      known[ends_of(text, text)] = true;
  std::unordered_set<std::string_view> used;
  const auto look_up = [&](std::string_view entry) {
    if (const auto found = texts.find(entry); found != texts.end())
      used.insert(*found);
  };
  for (size_t i = 0; !texts.empty() && i < merge_ends_.size(); i += 2) {
    const std::string_view left = merge_part(i), right = merge_part(i + 1);
    for (const std::string_view part : {left, right})
      if (!part.empty() && known[ends_of(part, part)])
        look_up(part);
    if (!left.empty() && !right.empty() && known[ends_of(left, right)])
      look_up(std::string(left).append(right.substr(std::min(prefix_bytes, right.size()))));
  }
  return used;
}

void EntryFile::require_unique_ids() const {
  const std::vector<uint32_t> &ids = entries_.ids;
  if (std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end())
    return;
  std::unordered_map<uint32_t, size_t> owners;
  for (size_t i = 0; i < ids.size(); ++i)
    if (const auto [owner, is_new] = owners.try_emplace(ids[i], i); !is_new)
      throw std::invalid_argument("vocab: ID " + std::to_string(ids[i]) + " belongs to both " +
                                  quoted(entries_[owner->second]) + " and " + quoted(entries_[i]));
}

void EntryFile::require_unique_merges() const {
  std::unordered_map<std::string, size_t> indexes;
  for (size_t i = 0; i < merge_count(); ++i) {
    std::string pair = std::to_string(merge_part(2 * i).size()) + ":";
    pair.append(merge_part(2 * i)).append(merge_part(2 * i + 1));
    if (const auto [first, is_new] = indexes.try_emplace(std::move(pair), i); !is_new)
      throw std::invalid_argument("merges[" + std::to_string(i) + "]: same as merges[" +
                                  std::to_string(first->second) + "] (got " + quoted(merge_part(2 * i)) +
                                  " and " + quoted(merge_part(2 * i + 1)) + ")");
  }
}

std::vector<Vocabulary::Entry> EntryFile::ordinary_entries(const std::vector<SpecialToken> &special_tokens,
                                                           const std::optional<TextRules> &rules) const {
  std::unordered_map<uint32_t, std::string_view> text_of;
  std::unordered_set<std::string_view> texts;
  for (const SpecialToken &token : special_tokens) {
    text_of.emplace(token.value, token.text);
    texts.insert(token.text);
  }
  const auto used = used_by_merges(texts, rules ? rules->prefix.size() : 0);
  std::vector<Vocabulary::Entry> ordinary;
  ordinary.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const std::string_view entry = entries_[i];
    const auto special = text_of.find(entries_.ids[i]);
    if (!has_merges_ || special == text_of.end() ||
        (special->second == entry && (may_start_merging(rules, entry) || used.contains(entry))))
      ordinary.push_back({entries_.ids[i], entry});
  }
  return ordinary;
}

std::optional<Vocabulary::Merges> EntryFile::merges() const {
  if (!has_merges_)
    return std::nullopt;
  Vocabulary::Merges merges;
  merges.reserve(merge_count());
  for (size_t i = 0; i < merge_count(); ++i)
    merges.emplace_back(merge_part(2 * i), merge_part(2 * i + 1));
  return merges;
}

} // namespace bpe
