#include "encode/components.hpp"

#include "text/utf8.hpp"
#include "vocabulary/merge_cuts.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace bpe {

namespace {

using Kind = Normalizer::Kind;

constexpr uint32_t mark = 0x2581;

bool escapes_spaces(const Kind &kind) {
  return kind.name == "replace" && kind.first == " " && kind.second == lower_block;
}

bool puts_mark(const Kind &kind) {
  return (kind.name == "prefix" || kind.name == "input_prefix") && kind.first == lower_block;
}

std::vector<Kind> joined(const std::vector<Kind> &normalizer, const std::vector<Kind> &changes) {
  std::vector<Kind> all = normalizer;
  all.insert(all.end(), changes.begin(), changes.end());
  return all;
}

// Return the steps that produce the same text with spaces and U+2581 exchanged.
std::vector<Kind> with_spaces(const std::vector<Kind> &kinds) {
  std::vector<Kind> made;
  for (const Kind &kind : kinds) {
    if (escapes_spaces(kind)) {
      if (!made.empty() && made.back().name == "prepend" && made.back().first == lower_block)
        made.back().first = " ";
      made.push_back({"replace", std::string(lower_block), " "});
    } else if (puts_mark(kind) && !made.empty()) {
      made.push_back({kind.name, " ", ""});
    } else {
      made.push_back(kind);
    }
  }
  return made;
}

// Return the automaton for texts with spaces and U+2581 exchanged.
std::shared_ptr<const Automaton> with_spaces(const Automaton &automaton) {
  auto made = std::make_shared<Automaton>(automaton);
  CharacterClasses &classes = made->classes;
  for (const uint32_t c : {uint32_t{' '}, mark}) { // other code points share their pages
    const CharacterClasses::Page page = classes.pages[classes.page_of[c / 64]];
    classes.page_of[c / 64] = static_cast<uint16_t>(classes.pages.size());
    classes.pages.push_back(page);
  }
  std::swap(classes.pages[classes.page_of[' ' / 64]][' ' % 64],
            classes.pages[classes.page_of[mark / 64]][mark % 64]);
  made->complete(made->steps.class_count);
  return made;
}

AddedTokens with_spaces(const AddedTokens &tokens) {
  std::vector<SpecialToken> normalized = tokens.normalized().tokens();
  for (SpecialToken &token : normalized)
    token.text = exchange_spaces(token.text);
  return {tokens.contents(), tokens.raw().tokens(), std::move(normalized)};
}

// Return whether a class contains only one code point.
bool is_alone(const CharacterClasses &classes, uint8_t wanted) {
  size_t count = 0;
  for (size_t page = 0; page < 0x110000 / 64; ++page) {
    const CharacterClasses::Page &of = classes.pages[classes.page_of[page]];
    count += static_cast<size_t>(std::count(of.begin(), of.end(), wanted));
  }
  return count == 1;
}

// Return whether the automaton cuts no text. has_spaces: texts have no U+2581.
bool leaves_texts_whole(const Automaton &automaton, bool has_spaces) {
  if (automaton.later || automaton.two_way.rights != 0)
    return false;
  std::vector<bool> absent(automaton.steps.class_count);
  absent.back() = true; // of bytes within characters
  if (has_spaces) {
    const uint8_t of_mark = automaton.classes.pages[automaton.classes.page_of[mark / 64]][mark % 64];
    absent[of_mark] = absent[of_mark] || is_alone(automaton.classes, of_mark);
  }
  std::vector<bool> reached(Automaton::row);
  std::vector<uint8_t> open{automaton.initial};
  reached[automaton.initial] = true;
  while (!open.empty()) {
    const uint8_t state = open.back();
    open.pop_back();
    for (size_t kind = 0; kind < absent.size(); ++kind) {
      if (absent[kind])
        continue;
      const uint8_t next = automaton.then[kind * Automaton::row + state];
      const bool starts = next >= automaton.both_end && next < automaton.here_end;
      const bool is_quiet = next >= automaton.here_end && next < automaton.silent_end;
      const uint8_t quiet = automaton.quiet(next);
      if ((state == automaton.initial ? !starts : !is_quiet) || quiet == automaton.initial ||
          automaton.at_end[next].start_count != 0 || automaton.oldest_pending[next].reg != Automaton::nothing)
        return false;
      if (!reached[quiet]) {
        reached[quiet] = true;
        open.push_back(quiet);
      }
    }
  }
  return true;
}

std::shared_ptr<const Normalizer> normalizer_of(const std::vector<Kind> &kinds) {
  return kinds.empty() ? nullptr : std::make_shared<const Normalizer>(kinds);
}

// Return whether texts may have spaces for U+2581. They may not if there is no entry U+2581 but
// byte_fallback: U+2581 then becomes three IDs, but a text has room for one ID per byte.
bool may_keep_spaces(const FileComponents &components, const TextRules &rules, bool has_mark_entry) {
  const auto &[added_tokens, automaton, normalizer, changes] = components;
  if (rules.byte_level || (rules.byte_fallback && !has_mark_entry) || !automaton || automaton->later)
    return false;
  const std::vector<Kind> all = joined(normalizer, changes);
  const auto escape = std::find_if(all.begin(), all.end(), escapes_spaces);
  const auto keeps_form = [](const Kind &kind) { return escapes_spaces(kind) || puts_mark(kind); };
  // White space next to a normalized token is searched for in the normalized text, where U+2581 does not
  // count.
  const auto looks_for_spaces = [](const SpecialToken &token) { return token.lstrip || token.rstrip; };
  return escape != all.end() && std::all_of(escape, all.end(), keeps_form) &&
         std::ranges::none_of(added_tokens.normalized().tokens(), looks_for_spaces);
}

} // namespace

Vocabulary vocabulary_for(const FileComponents &components, std::vector<Vocabulary::Entry> entries,
                          const std::optional<Vocabulary::Merges> &merges, bool ignore_merges,
                          std::optional<TextRules> rules) {
  if (rules && !merges)
    throw std::invalid_argument("a rank file has no rules for text");
  const auto is_mark = [](const Vocabulary::Entry &entry) { return entry.bytes == lower_block; };
  if (rules)
    rules->has_spaces =
        rules->has_spaces || may_keep_spaces(components, *rules, std::ranges::any_of(entries, is_mark));
  return Vocabulary(std::move(entries), merges, ignore_merges, std::move(rules));
}

Components::Components(FileComponents of, const Vocabulary &vocabulary, bool ignore_merges)
    : all_tokens(std::move(of.added_tokens)), automaton(std::move(of.automaton)) {
  const std::optional<TextRules> &rules = vocabulary.text_rules();
  const bool has_spaces = rules && rules->has_spaces;
  if (has_spaces) {
    if (std::any_of(of.normalizer.begin(), of.normalizer.end(), escapes_spaces))
      all_tokens = with_spaces(all_tokens);
    of.normalizer = with_spaces(of.normalizer);
    of.changes = with_spaces(of.changes);
    automaton = with_spaces(*automaton);
  }
  const std::vector<Kind> all = joined(of.normalizer, of.changes);
  normalizer = normalizer_of(of.normalizer);
  changes = normalizer_of(of.changes);
  both = !normalizer ? changes : !changes ? normalizer : normalizer_of(all);
  added_tokens = all_tokens;
  if (!rules || rules->byte_level || !automaton)
    return;
  leaves_whole = leaves_texts_whole(*automaton, has_spaces);
  if (!leaves_whole || ignore_merges || vocabulary.merges_characters())
    return;
  MergeCuts cuts(vocabulary, all_tokens, all);
  automaton = std::move(cuts.automaton);
  added_tokens = std::move(cuts.tokens);
}

} // namespace bpe
