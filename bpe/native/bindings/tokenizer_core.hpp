// What a tokenizer of Python is in the core.
#pragma once

#include "bindings/bindings.hpp"
#include "encode/decoder.hpp"
#include "encode/text_decoder.hpp"

namespace bpe::python {

// An encoder with the decoder that reads its vocabulary; immutable.
struct TokenizerCore {
  const bpe::Encoder encoder;
  const std::shared_ptr<const bpe::Decoder> decoder;
  const std::optional<bpe::TextDecoder> text_decoder; // in its place, for entries that are text

  // What the encoder is made of.
  template <class First, class Second, class... Rest>
  TokenizerCore(First &&first, Second &&second, Rest &&...rest)
      : encoder(std::forward<First>(first), std::forward<Second>(second), std::forward<Rest>(rest)...),
        decoder(std::make_shared<bpe::Decoder>(encoder.vocabulary(), encoder.added_tokens().contents())) {}
  // The same vocabulary and contents of added tokens, with other components.
  TokenizerCore(const TokenizerCore &other, bpe::Components components,
                std::optional<bpe::TextDecoder> text_decoder)
      : encoder(other.encoder, std::move(components)), decoder(other.decoder),
        text_decoder(std::move(text_decoder)) {}
  TokenizerCore(const TokenizerCore &) = delete;
};

void bind_decoding(nb::class_<TokenizerCore> &encoder); // the calls that decode

} // namespace bpe::python
