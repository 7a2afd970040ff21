#include "pretokenize/later_phases.hpp"

#include "pretokenize/piece_walk.hpp"
#include "text/utf8.hpp"
#include "vocabulary/byte_alphabet.hpp"

#include <algorithm>
#include <bit>

namespace bpe {

LaterPieces::LaterPieces(const LaterPhases &phases) : phases_(phases) {
  for (const LaterPhases::Phase &phase : phases.phases)
    own_.emplace_back().window = std::make_unique<TextWindow>(*phase.automaton);
}

void LaterPieces::cut(std::string_view piece, const uint8_t *readable, size_t input_bytes) {
  text_.clear();
  ends_.clear();
  run(0, piece, readable, input_bytes);
}

void LaterPieces::run(size_t number, std::string_view text, const uint8_t *readable, size_t input_bytes) {
  if (number == own_.size())
    return give(text);
  Own &own = own_[number];
  if (const Normalizer *const change = phases_.phases[number].change.get()) {
    const TextStart start = input_bytes > 0 ? TextStart::input : TextStart::section;
    if (input_bytes > 0) // the prefix and the result of the first character
      input_bytes = change->apply(text.substr(0, input_bytes), own.scratch, start).size();
    const std::string_view made = change->apply(text, own.scratch, start);
    if (made.data() != text.data())
      readable = own.scratch.readable(made);
    text = made;
  }
  const auto next = [&](size_t start, size_t stop) {
    const size_t from_input = std::min(stop, input_bytes) - std::min(start, input_bytes);
    run(number + 1, text.substr(start, stop - start), readable, from_input);
  };
  const Automaton &automaton = *phases_.phases[number].automaton;
  if (text.size() <= max_short_bytes && automaton.two_way.rights == 0) {
    if (text.empty())
      return;
    ShortPieces pieces = short_pieces(automaton, bytes_of(text), text.size());
    while (pieces.starts != 0) {
      const size_t start = static_cast<size_t>(std::countr_zero(pieces.starts));
      pieces.starts &= pieces.starts - 1;
      if ((pieces.drops >> start & 1) == 0)
        next(start, pieces.starts != 0 ? static_cast<size_t>(std::countr_zero(pieces.starts)) : text.size());
    }
    return;
  }
  own.window->for_each_piece(bytes_of(text), text.size(), readable,
                             [&](size_t start, size_t stop, bool drops) {
                               if (!drops)
                                 next(start, stop);
                             });
}

void LaterPieces::give(std::string_view piece) {
  if (!phases_.from_alphabet) {
    text_.append(bytes_of(piece), piece.size());
  } else {
    uint8_t *out = text_.room(piece.size());
    const uint8_t *p = bytes_of(piece), *const stop = p + piece.size();
    while (p < stop) {
      const Char character = read_char(p, stop);
      if (character.code_point < ByteAlphabet::end && byte_alphabet.byte_of[character.code_point] >= 0)
        *out++ = static_cast<uint8_t>(byte_alphabet.byte_of[character.code_point]);
      p += character.length;
    }
    text_.set_end(out);
  }
  ends_.push_back(text_.size());
}

void LaterPieces::reset() {
  for (ByteBuffer *buffer : {&text_, &kept_})
    buffer->trim(most_kept_bytes);
  for (Own &own : own_)
    for (ByteBuffer &buffer : own.scratch.buffers)
      buffer.trim(most_kept_bytes);
}

} // namespace bpe
