// The Encoder of Python: an encoder with the decoder that reads its vocabulary.
#pragma once

#include "bindings/bindings.hpp"
#include "encode/decoder.hpp"
#include "encode/text_decoder.hpp"

namespace bpe::python {

// An encoder with the decoder that reads its vocabulary.
struct Codec {
  bpe::Encoder encoder;
  bpe::Decoder decoder;
  std::optional<bpe::TextDecoder> text_decoder; // in its place, for entries that are text

  // What an Encoder is made of.
  template <class First, class Second, class... Rest>
  Codec(First &&first, Second &&second, Rest &&...rest)
      : encoder(std::forward<First>(first), std::forward<Second>(second), std::forward<Rest>(rest)...),
        decoder(encoder.vocabulary(), encoder.added_tokens().contents()) {}
  Codec(const Codec &) = delete;
};

void bind_decoding(nb::class_<Codec> &encoder); // the calls that decode

} // namespace bpe::python
