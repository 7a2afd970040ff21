#include "normalize/normalizer.hpp"

#include "normalize/character_map.hpp"
#include "normalize/charsmap.hpp"
#include "normalize/normal_form.hpp"
#include "normalize/other_steps.hpp"
#include "normalize/unicode_tables.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace bpe {

namespace {

std::string_view view_of(const ByteBuffer &buffer) {
  return {reinterpret_cast<const char *>(buffer.data()), buffer.size()};
}

Char character_at(std::string_view text, size_t place) {
  return read_char(bytes_of(text) + place, bytes_of(text) + text.size());
}
size_t start_before(std::string_view text, size_t place) {
  do
    --place;
  while (place > 0 && continues_character(text[place]));
  return place;
}

// Maps without parameters are shared.
const CharacterMap *map_named(std::string_view name) {
  using Make = CharacterMap (*)();
  static constexpr std::pair<std::string_view, Make> makers[] = {
      {"lowercase", lower_case_map},
      {"strip_accents", [] { return removing_map(unicode::combining_marks); }},
      {"nmt", [] { return clean_map(unicode::nmt_removed, unicode::nmt_spaces); }},
      {"bert_clean", [] { return clean_map(unicode::bert_removed, unicode::bert_spaces); }},
      {"bert_ideographs", spaced_ideographs_map},
      {"bert_clean_ideographs",
       [] { return map_named("bert_clean")->followed_by(*map_named("bert_ideographs")); }},
      {"bert_accents", [] { return removing_map(unicode::nonspacing_marks); }},
      {"bert_accents_lowercase",
       [] { return map_named("bert_accents")->followed_by(*map_named("lowercase")); }},
  };
  static std::recursive_mutex mutex;
  static std::map<std::string_view, CharacterMap> made;
  for (const auto &[known, make] : makers)
    if (known == name) {
      const std::lock_guard lock(mutex);
      auto found = made.find(known);
      if (found == made.end())
        found = made.emplace(known, make()).first;
      return &found->second;
    }
  return nullptr;
}

const NormalForm *form_named(std::string_view name) {
  if (name == "nfc" || name == "nfd" || name == "nfkc" || name == "nfkd")
    return &NormalForm::get(name.back() == 'c', name.size() == 4);
  return nullptr;
}

std::unique_ptr<const Step> make_step(const Normalizer::Kind &kind) {
  const std::string &name = kind.name;
  if (name == "strip_left" || name == "strip_right" || name == "strip_both")
    return std::make_unique<Strip>(name != "strip_right", name != "strip_left");
  if (name == "prepend")
    return std::make_unique<Prepend>(kind.first);
  if (name == "prefix" || name == "input_prefix")
    return std::make_unique<Prefix>(kind.first);
  if (name == "byte_level")
    return std::make_unique<BytesAsCharacters>();
  if (name == "replace_matches" && kind.automaton)
    return std::make_unique<ReplaceMatches>(kind.automaton, kind.second);
  if (name == "charsmap")
    return std::make_unique<Charsmap>(kind.first);
  if (name == "precompiled")
    return std::make_unique<Precompiled>(kind.first);
  if (name == "replace") {
    const Char first = read_char(bytes_of(kind.first), bytes_of(kind.first) + kind.first.size());
    // Searching for a rare character, such as one beyond ASCII, is faster than mapping every character.
    if (kind.first.empty() || first.length < kind.first.size() || first.length > 1)
      return std::make_unique<ReplaceText>(kind.first, kind.second);
    auto map = std::make_unique<CharacterMap>();
    map->replace(first.code_point, kind.second);
    map->finish();
    return map;
  }
  throw std::invalid_argument("normalizer \"" + name + "\" is not known");
}

} // namespace

Normalizer::Normalizer(const std::vector<Kind> &kinds) {
  // For every step, the text after a border starts with the image of one character, unless an earlier step
  // joined that character with the next ones.
  bool joins = false, joins_and_replaces = false;
  for (const Kind &kind : kinds) {
    const CharacterMap *const map = map_named(kind.name);
    const NormalForm *const form = form_named(kind.name);
    const Step *step = map ? static_cast<const Step *>(map) : form;
    if (!step) {
      owned_.push_back(make_step(kind));
      step = owned_.back().get();
    }
    const auto *const precompiled = dynamic_cast<const Precompiled *>(step);
    // Precompiled reads the character before a border, so no earlier step may have changed it.
    if (precompiled && steps_.size() > (prepends_ ? 1 : 0))
      has_borders_ = false;
    if (joins_and_replaces && form)
      has_borders_ = false;
    const auto *const replace = dynamic_cast<const ReplaceText *>(step);
    if (joins && replace && !replace->is_of_one_character())
      has_borders_ = false;
    joins_and_replaces = joins_and_replaces || precompiled || (joins && !form && kind.name != "lowercase");
    joins = joins || precompiled || kind.name == "nfc" || kind.name == "nfkc";
    if (precompiled)
      precompiled_ = precompiled;
    if (kind.name == "charsmap")
      has_borders_ = false;
    if (kind.name.starts_with("strip_") && kind.name != "strip_accents")
      has_borders_ = false;
    has_borders_ = has_borders_ && kind.name != "replace_matches"; // matches depend on their context
    if (kind.name == "prepend") {
      prepends_ = true;
      has_borders_ = has_borders_ && steps_.empty();
    }
    const bool prefixes = kind.name == "prefix" || kind.name == "input_prefix";
    prefixes_ |= prefixes;
    only_prefixes_ &= prefixes;
    has_borders_ = has_borders_ && !(prefixes_ && prepends_);
    steps_.push_back({step, kind.name == "input_prefix"          ? TextStart::input
                            : prefixes || kind.name == "prepend" ? TextStart::section
                                                                 : TextStart::inside});
    max_growth_ = saturating_product(max_growth_, step->max_growth());
  }
  // The image of an ASCII character decides whether later steps have a border there.
  for (uint32_t c = 0; has_borders_ && c < 0x80; ++c) {
    ByteBuffer image, next;
    const uint8_t byte = static_cast<uint8_t>(c);
    image.append(&byte, 1);
    bool is_border = true;
    for (const Placed &placed : steps_) {
      if (placed.least > TextStart::inside)
        continue;
      is_border = is_border && image.size() > 0 &&
                  placed.step->is_border(read_char(image.data(), image.data() + image.size()).code_point);
      next.clear();
      placed.step->append(image.data(), image.size(), next);
      std::swap(image, next);
    }
    ascii_is_border_[c] = is_border;
    ascii_stays_[c] = is_border && image.size() == 1 && *image.data() == c;
  }
}

std::string_view Normalizer::apply(std::string_view text, Scratch &scratch, TextStart start) const {
  size_t filled = 0;
  for (const auto [step, least] : steps_) {
    if (start < least)
      continue;
    const uint8_t *const bytes = bytes_of(text);
    const size_t same = step->first_change(bytes, text.size());
    if (same == text.size())
      continue;
    ByteBuffer &out = scratch.buffers[filled];
    out.clear();
    out.room(text.size());
    out.append(bytes, same);
    step->append(bytes + same, text.size() - same, out);
    text = view_of(out);
    filled ^= 1;
  }
  return text;
}

bool Normalizer::is_border(std::string_view text, size_t place) const {
  if (place == 0 || place >= text.size())
    return true;
  if (!has_borders_)
    return false;
  const Char c = character_at(text, place);
  if (precompiled_ && !precompiled_->is_border_between(
                          character_at(text, start_before(text, place)).code_point, c.code_point))
    return false;
  return c.code_point < 0x80 ? ascii_is_border_[c.code_point] : stays_behind_border(text, place);
}

// For a character beyond ASCII.
bool Normalizer::stays_behind_border(std::string_view text, size_t place) const {
  const Char c = character_at(text, place);
  for (const auto [step, least] : steps_)
    if (least == TextStart::inside &&
        (!step->is_border(c.code_point) || step->first_change(bytes_of(text) + place, c.length) < c.length))
      return false;
  return true;
}

size_t Normalizer::last_border(std::string_view text, size_t place) const {
  if (!has_borders_)
    return 0;
  for (place = std::min(place, text.size() - std::min<size_t>(text.size(), 1)); place > 0; --place)
    if ((text[place] & 0xC0) != 0x80 && is_border(text, place))
      return place;
  return 0;
}

size_t Normalizer::place_before(std::string_view text, size_t place) const {
  Scratch scratch;
  for (size_t start = 0; start < text.size();) {
    size_t stop = start + 1;
    while (stop < text.size() && (continues_character(text[stop]) || !is_border(text, stop)))
      ++stop;
    const size_t size =
        apply(text.substr(start, stop - start), scratch, start == 0 ? TextStart::section : TextStart::inside)
            .size();
    if (place < size)
      return start;
    place -= size;
    start = stop;
  }
  return text.size();
}

bool Normalizer::is_fixed_border(std::string_view text, size_t place) const {
  if (place == 0 || place >= text.size())
    return false;
  const size_t before = start_before(text, place);
  const auto stays = [&](size_t at) {
    const uint8_t byte = static_cast<uint8_t>(text[at]);
    return is_border(text, at) && (byte < 0x80 ? ascii_stays_[byte] : stays_behind_border(text, at));
  };
  // With a border after this character, the following text does not join it. A truncated character might.
  const size_t next = place + character_at(text, place).length;
  if (before == 0 || next >= text.size())
    return false;
  const bool is_whole = static_cast<uint8_t>(text[next]) < 0x80 || character_at(text, next).length > 1;
  return is_whole && is_border(text, next) && stays(before) && stays(place);
}

} // namespace bpe
