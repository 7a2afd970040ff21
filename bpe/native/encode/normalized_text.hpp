// Normalize text between special tokens, in the thread that encodes it.
//
// A short text that does not change is encoded in place. Any other text is normalized in blocks that end at
// borders (normalizer.hpp) into memory of the session, and its certain pretokens are encoded. The rest waits
// for the next block. The memory is reused once all text in it is encoded. It is bounded by a few blocks, by
// the longest pretoken, and by texts with a normalizer that has no borders.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/automaton.hpp"

#include <string_view>

namespace bpe {

class EncoderSession;

class NormalizedText {
public:
  // text: valid UTF-8 without special tokens. start: the start of such a text, or the rest of one cut at a
  // border. Bytes up to `readable` may be read. Text encoded earlier must have stayed in place since the
  // session finished.
  void encode(EncoderSession &session, const Normalizer &normalizer, const Automaton &automaton,
              std::string_view text, const uint8_t *readable, TextStart start);
  // Return the normalized text in one piece, to search for tokens in it: the text itself if it does not
  // change, otherwise a copy that is valid until the next call. Bytes up to readable() may be read.
  std::string_view whole(EncoderSession &session, const Normalizer &normalizer, std::string_view text,
                         TextStart start);
  const uint8_t *readable() const { return text_.readable(); }
  void reset(); // call after the session has finished, when nothing in here is needed

private:
  void append(EncoderSession &session, std::string_view normalized);
  void encode_up_to(EncoderSession &session, size_t stop, bool begins_input);
  void encode_prefixed(EncoderSession &session, const Normalizer &normalizer, const Automaton &automaton,
                       std::string_view text, const uint8_t *readable, TextStart start);

  Normalizer::Scratch scratch_;
  ByteBuffer text_;
  size_t waiting_ = 0; // start of the text not encoded yet
};

} // namespace bpe
