#include "encode/normalized_text.hpp"

#include "encode/encoder_session.hpp"
#include "pretokenize/safe_cut.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace bpe {

namespace {

constexpr size_t least_block_bytes = size_t{64} << 10; // stays in the second-level cache between steps
constexpr size_t buffer_bytes = size_t{512} << 10;
constexpr size_t kept_bytes = size_t{4} << 20; // of memory used for a text without borders

// Return the end of the first block of a text: a border, which may be far away, or the end of the text.
size_t block_end(const Normalizer &normalizer, std::string_view text) {
  for (size_t bytes = least_block_bytes; bytes < text.size(); bytes *= 2)
    if (const size_t border = normalizer.last_border(text, bytes))
      return border;
  return text.size();
}

} // namespace

void NormalizedText::encode(EncoderSession &session, const Normalizer &normalizer, const Automaton &automaton,
                            std::string_view text, const uint8_t *readable, TextStart start) {
  if (normalizer.only_prefixes())
    return encode_prefixed(session, normalizer, automaton, text, readable, start);
  bool is_whole = true, begins_input = start == TextStart::input; // about the next text to encode
  size_t try_bytes =
      least_block_bytes; // doubled if no cut is found, so that a giant pretoken takes linear time
  while (!text.empty()) {
    const size_t stop = block_end(normalizer, text);
    const bool is_last = stop == text.size();
    const std::string_view block = text.substr(0, stop);
    const std::string_view normalized = normalizer.apply(block, scratch_, start);
    if (is_whole && is_last && normalized.data() == text.data()) {
      session.encode_text(bytes_of(text), text.size(), readable, begins_input);
      return;
    }
    append(session, normalized);
    is_whole = false;
    start = normalizer.start_behind(start, normalized);
    text.remove_prefix(stop);
    if (is_last) {
      encode_up_to(session, text_.size(), begins_input);
    } else if (text_.size() - waiting_ >= try_bytes) {
      const size_t cut = last_safe_cut(automaton, text_.data() + waiting_, text_.size() - waiting_);
      encode_up_to(session, waiting_ + cut, begins_input);
      begins_input = begins_input && cut == 0;
      try_bytes = std::max(least_block_bytes, 2 * (text_.size() - waiting_));
    }
  }
}

// Only the first pretokens change. The others are encoded in place if there are enough of them, since
// handling two parts of a short text takes longer than copying it.
void NormalizedText::encode_prefixed(EncoderSession &session, const Normalizer &normalizer,
                                     const Automaton &automaton, std::string_view text,
                                     const uint8_t *readable, TextStart start) {
  constexpr size_t short_bytes = 1024;
  constexpr size_t begin_bytes = 256; // doubled until it contains a cut
  size_t cut = 0;
  if (start != TextStart::inside) {
    for (size_t bytes = begin_bytes; cut == 0 && bytes < text.size() && text.size() > short_bytes;
         bytes *= 2) {
      while (continues_character(text[bytes]))
        --bytes;
      cut = last_safe_cut(automaton, bytes_of(text), bytes);
    }
    if (cut == 0)
      cut = text.size();
    append(session, normalizer.apply(text.substr(0, cut), scratch_, start));
    encode_up_to(session, text_.size(), start == TextStart::input);
  }
  if (cut < text.size())
    session.encode_text(bytes_of(text) + cut, text.size() - cut, readable);
}

std::string_view NormalizedText::whole(EncoderSession &session, const Normalizer &normalizer,
                                       std::string_view text, TextStart start) {
  const std::string_view given = text;
  bool is_same = true;
  while (!text.empty()) {
    const std::string_view block = text.substr(0, block_end(normalizer, text));
    const std::string_view normalized = normalizer.apply(block, scratch_, start);
    if (is_same && normalized.data() != block.data()) {
      append(session, given.substr(0, given.size() - text.size()));
      is_same = false;
    }
    if (!is_same)
      append(session, normalized);
    start = normalizer.start_behind(start, normalized);
    text.remove_prefix(block.size());
  }
  if (is_same)
    return given;
  const size_t begin = std::exchange(waiting_, text_.size());
  return {reinterpret_cast<const char *>(text_.data()) + begin, text_.size() - begin};
}

// Append after the waiting text. If there is no room, finish all text before it first to free its memory.
void NormalizedText::append(EncoderSession &session, std::string_view normalized) {
  if (text_.capacity() - text_.size() < normalized.size()) {
    session.out.finish();
    const size_t left = text_.size() - waiting_;
    if (left > 0)
      std::memmove(text_.data(), text_.data() + waiting_, left);
    text_.set_end(text_.data() + left);
    waiting_ = 0;
    if (text_.capacity() < left + normalized.size())
      text_.reserve(std::max(buffer_bytes, 2 * (left + normalized.size())));
  }
  text_.append(reinterpret_cast<const uint8_t *>(normalized.data()), normalized.size());
}

void NormalizedText::encode_up_to(EncoderSession &session, size_t stop, bool begins_input) {
  session.encode_text(text_.data() + waiting_, stop - waiting_, text_.readable(), begins_input);
  waiting_ = stop;
}

void NormalizedText::reset() {
  waiting_ = 0;
  text_.trim(kept_bytes);
  for (ByteBuffer &buffer : scratch_.buffers)
    buffer.trim(kept_bytes);
}

} // namespace bpe
