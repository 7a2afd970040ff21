#include "pretokenize/piece_stream.hpp"

#include <algorithm>
#include <iterator>

namespace bpe {

PieceStream::PieceStream(std::shared_ptr<const Automaton> automaton)
    : automaton_(std::move(automaton)), state_(automaton_->initial) {
  std::fill(std::begin(registers_), std::end(registers_), nowhere);
}

void PieceStream::feed(const uint8_t *text, size_t size, bool final) {
  const Automaton &automaton = *automaton_;
  for (size_t i = 0; i < size;) {
    // A character at a time: its class is that of all its bytes.
    lead_[lead_size_++] = text[i++];
    const uint8_t first = lead_[0];
    if (lead_size_ < (first < 0xC0 ? 1u : first < 0xE0 ? 2u : first < 0xF0 ? 3u : 4u))
      continue;
    const uint8_t kind = automaton.classes.of(lead_);
    std::copy_backward(characters_, characters_ + oldest - 1, characters_ + oldest);
    characters_[0] = size_;
    size_ += lead_size_;
    lead_size_ = 0;
    state_ = automaton.then[kind * Automaton::row + state_];
    if (state_ < automaton.both_end)
      found_.emplace_back(characters_[1], false);
    if (state_ >= automaton.before_end && state_ < automaton.here_end)
      found_.emplace_back(characters_[0], false);
    if (state_ >= automaton.silent_end)
      act(automaton.actions[state_ - automaton.silent_end]);
  }
  settled_ = size_;
  if (final) {
    act(automaton.at_end[state_]);
    found_.emplace_back(size_, false);
    ++settled_; // the end is known, too
  } else if (const Automaton::Start pending = automaton.oldest_pending[state_];
             pending.reg != Automaton::nothing) {
    settled_ = place(pending);
  }
}

void PieceStream::act(const Automaton::Actions &actions) {
  for (size_t k = 0; k < actions.start_count; ++k)
    found_.emplace_back(place(actions.starts[k]), actions.starts[k].drops != 0);
  for (size_t k = 0; k < actions.move_count; ++k)
    registers_[actions.moves[k].reg] = place(actions.moves[k].from);
}

uint64_t PieceStream::place(Automaton::Start start) const {
  return start.age == 0 ? registers_[start.reg] : characters_[start.age - 1];
}

std::vector<std::pair<uint64_t, bool>> PieceStream::take() {
  std::sort(found_.begin(), found_.end());
  const auto stop =
      std::find_if(found_.begin(), found_.end(), [&](const auto &start) { return start.first >= settled_; });
  std::vector<std::pair<uint64_t, bool>> taken(found_.begin(), stop);
  found_.erase(found_.begin(), stop);
  return taken;
}

} // namespace bpe
