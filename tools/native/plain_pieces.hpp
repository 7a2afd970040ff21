// Naive splitter that follows the tables of an automaton, one character at a time, with access to the whole
// text. Reference for the core's windows, streams and variants.
#pragma once

#include "fuzz_input.hpp"

#include "pretokenize/automaton.hpp"
#include "pretokenize/text_window.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace fuzz {

using Pieces = std::vector<std::pair<size_t, bool>>; // start of each, and whether it is dropped

class PlainWalk {
public:
  PlainWalk(const bpe::Automaton &automaton, std::string_view text) : automaton_(automaton) {
    const uint8_t *const start = bpe::bytes_of(text), *const stop = start + text.size();
    for (const uint8_t *p = start; p < stop;) {
      const bpe::Char c = bpe::read_char(p, stop);
      places_.push_back(static_cast<size_t>(p - start));
      classes_.push_back(
          automaton.classes.pages[automaton.classes.page_of[c.code_point / 64]][c.code_point % 64]);
      p += c.length;
    }
  }

  Pieces pieces() { return automaton_.two_way.rights == 0 ? forward() : back(); }

private:
  uint8_t behind(uint8_t state, size_t character) const {
    return automaton_.then[classes_[character] * bpe::Automaton::row + state];
  }

  Pieces forward() {
    uint8_t state = automaton_.initial;
    for (read_ = 0; read_ < places_.size();) {
      state = behind(state, read_++);
      if (state < automaton_.both_end)
        add({2, 0, 0});
      if (state >= automaton_.before_end && state < automaton_.here_end)
        add({1, 0, 0});
      if (state >= automaton_.silent_end)
        act(automaton_.actions[state - automaton_.silent_end]);
    }
    act(automaton_.at_end[state]);
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    return found_;
  }

  // Scans back from the end, with the known state before each character.
  Pieces back() const {
    std::vector<uint8_t> states{automaton_.initial};
    for (size_t i = 0; i < places_.size(); ++i)
      states.push_back(behind(states.back(), i));
    unsigned right = automaton_.two_way.end;
    Pieces pieces;
    for (size_t i = places_.size(); i-- > 0;) {
      const size_t row = automaton_.two_way.row_of[classes_[i] * bpe::Automaton::row + states[i]];
      const unsigned before = automaton_.two_way.before[row + right];
      if (before & bpe::TwoWay::starts)
        pieces.emplace_back(places_[i], (before & bpe::TwoWay::drops) != 0);
      right = before & bpe::TwoWay::right;
    }
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
  }

  size_t place(bpe::Automaton::Start start) const {
    if (start.age == 0)
      return registers_[start.reg];
    expect(start.age <= read_, "a start is within the text");
    return places_[read_ - start.age];
  }
  void add(bpe::Automaton::Start start) { found_.emplace_back(place(start), start.drops != 0); }
  void act(const bpe::Automaton::Actions &actions) {
    for (size_t i = 0; i < actions.start_count; ++i)
      add(actions.starts[i]);
    for (size_t i = 0; i < actions.move_count; ++i)
      registers_[actions.moves[i].reg] = place(actions.moves[i].from);
  }

  const bpe::Automaton &automaton_;
  std::vector<size_t> places_; // offsets of the characters
  std::vector<uint8_t> classes_;
  size_t read_ = 0;
  size_t registers_[bpe::Automaton::most_registers] = {};
  Pieces found_;
};

inline Pieces plain_pieces(const bpe::Automaton &automaton, std::string_view text) {
  return PlainWalk(automaton, text).pieces();
}

// Returns the pieces that are not dropped.
inline std::vector<std::string_view> kept(const Pieces &pieces, std::string_view text) {
  std::vector<std::string_view> pretokens;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [start, drops] = pieces[i];
    const size_t stop = i + 1 < pieces.size() ? pieces[i + 1].first : text.size();
    if (!drops)
      pretokens.push_back(text.substr(start, stop - start));
  }
  return pretokens;
}

// Returns the pieces that the core's windows find.
inline Pieces window_pieces(const bpe::Automaton &automaton, const Exact &text) {
  const auto window = std::make_unique<bpe::TextWindow>(automaton);
  window->reset(text.data(), text.size(), text.stop());
  Pieces pieces;
  for (const uint8_t *at = text.data(); at < text.stop();) {
    window->open(at);
    const size_t from = static_cast<size_t>(at - text.data());
    if (window->certain() == 0) {
      at = window->end_of_long_piece();
      pieces.emplace_back(from, window->drops_first());
    } else {
      for (size_t offset = 0; offset < window->certain(); offset = window->next_start(offset))
        pieces.emplace_back(from + offset, window->drops(offset));
      at += window->certain();
    }
  }
  return pieces;
}

} // namespace fuzz
