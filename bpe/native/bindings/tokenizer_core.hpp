// A tokenizer in the core.
#pragma once

#include "bindings/bindings.hpp"
#include "encode/decoder.hpp"
#include "encode/text_decoder.hpp"

namespace bpe::python {

// (replaced, stripped, strip_count, special tokens): `bpe.decoders.CoreRule`, and the texts that decoders see
// of special tokens.
using TextDecodingTuple =
    std::tuple<std::vector<std::pair<nb::bytes, nb::bytes>>, nb::bytes, size_t, nb::dict>;

struct DecoderOfText {
  bpe::TextDecoding rule;
  std::vector<bpe::SpecialToken> special_tokens;
};
std::optional<DecoderOfText> decoder_of_text_from(const std::optional<TextDecodingTuple> &decoding);

// An encoder with the decoder for its vocabulary; immutable.
struct TokenizerCore {
  const bpe::Encoder encoder;
  const bpe::Decoder decoder;
  std::optional<bpe::TextDecoder> text_decoder; // replaces `decoder` for entries that are text

  TokenizerCore(bpe::Vocabulary vocabulary, bpe::FileComponents components, bool ignore_merges,
                size_t cache_bytes, const std::optional<DecoderOfText> &text_decoder = {});
  TokenizerCore(const TokenizerCore &) = delete;
};

void bind_decoding(nb::class_<TokenizerCore> &encoder); // the calls that decode

} // namespace bpe::python
