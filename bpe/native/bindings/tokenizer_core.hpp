// A tokenizer in the core.
#pragma once

#include "bindings/bindings.hpp"
#include "encode/decoder.hpp"

namespace bpe::python {

// (replaced, stripped, strip_count, special tokens): `bpe.decoders.CoreRule`, and the texts of special tokens
// for decoders.
using TextDecodingTuple =
    std::tuple<std::vector<std::pair<nb::bytes, nb::bytes>>, nb::bytes, size_t, nb::dict>;

// An encoder with the decoder for its vocabulary. Immutable.
struct TokenizerCore {
  const bpe::Encoder encoder;
  const bpe::Decoder decoder;

  TokenizerCore(bpe::Vocabulary vocabulary, bpe::FileComponents components, bool ignore_merges,
                size_t cache_bytes, const std::optional<bpe::TextDecoding> &text_decoding = {})
      : encoder(std::move(vocabulary), std::move(components), ignore_merges, cache_bytes),
        decoder(encoder.vocabulary(), encoder.components().added_tokens.contents(), text_decoding) {}
  TokenizerCore(const TokenizerCore &) = delete;
};

// Calls on less text keep the GIL: releasing it may cost a time slice of a waiting thread, far more than
// encoding so little text.
inline constexpr size_t gil_release_bytes = 4096;

// Return the added tokens to recognize. special: True for all, False for none, or AddedTokens.
inline const bpe::AddedTokens &tokens_to_find(const TokenizerCore &core, nb::handle special) {
  static const bpe::AddedTokens none;
  if (nb::isinstance<bpe::AddedTokens>(special))
    return *nb::inst_ptr<bpe::AddedTokens>(special);
  return nb::cast<bool>(special) ? core.encoder.components().added_tokens : none;
}

void bind_decoding(nb::class_<TokenizerCore> &encoder); // the methods that decode

} // namespace bpe::python
