// Text between special tokens is normalized here, in the thread that encodes it.
//
// A short text that stays as it is, is encoded where it lies. Any other is normalized in blocks that end at
// borders (normalizer.hpp) into memory of the session, and what is certain of its pretokens is encoded; the
// rest waits for the next block. The memory is used again once all that lies in it is encoded, so it is
// bounded by a few blocks, by the longest pretoken, and by texts whose normalizer has no borders.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/automaton.hpp"

#include <string_view>

namespace bpe {

class EncoderSession;

class NormalizedText {
public:
  // text: valid UTF-8 without special tokens. start: whether it is one, or the rest of one that was cut at a
  // border. Bytes up to `readable` may be read. What was encoded before must have stayed in place since the
  // session finished.
  void encode(EncoderSession &session, const Normalizer &normalizer, const Automaton &automaton,
              std::string_view text, const uint8_t *readable, TextStart start);
  // The text as the normalizer has it, in one piece: for tokens that are looked for in it. It is the text
  // itself if that stays as it is, else it lies here until the next call, and bytes up to readable() may be
  // read.
  std::string_view whole(EncoderSession &session, const Normalizer &normalizer, std::string_view text,
                         TextStart start);
  const uint8_t *readable() const { return text_.readable(); }
  void reset(); // once the session has finished: nothing in here is needed any more

private:
  void append(EncoderSession &session, std::string_view normalized);
  void encode_up_to(EncoderSession &session, size_t stop, bool begins_input);
  void encode_prefixed(EncoderSession &session, const Normalizer &normalizer, const Automaton &automaton,
                       std::string_view text, const uint8_t *readable, TextStart start);

  Normalizer::Scratch scratch_;
  ByteBuffer text_;
  size_t waiting_ = 0; // from here on it is not encoded
};

} // namespace bpe
