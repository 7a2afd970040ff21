"""The tokenizer: text to ids and back, exactly as tiktoken and Hugging Face tokenizers do it; from files and to files.

A `Tokenizer` never changes; it may be shared by threads and pickled to worker processes. What it consists of, by name,
is in `bpe.description`, how it encodes in `bpe.encoding`.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bpe.added_tokens import AddedToken
from bpe.buffers import bad_ids, offsets_from, tokens_from, unknown_id
from bpe.compiled import compile_parts, read_compiled
from bpe.decoders import Decoder
from bpe.description import Parts, make_parts
from bpe.encoding import AllowedSpecial, Encoding
from bpe.errors import BadArgument, shown
from bpe.formats import by_path, gpt2, huggingface, sentencepiece_writer, tiktoken
from bpe.formats.byte_alphabet import to_characters
from bpe.hub import locate
from bpe.normalizers import Normalizer
from bpe.output_file import open_output_file, write_file
from bpe.post_processing import PostProcessor
from bpe.pretokenizer import Pretokenizer
from bpe.ragged import Ragged
from bpe.vocabulary import SpecialTokens, TextRules, warning_of_missing_bytes
from tokenmill.stores.system import cached_property

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["AddedToken", "AllowedSpecial", "Tokenizer"]


class Tokenizer(Encoding):
    """An immutable byte-level BPE tokenizer."""

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Iterable[tuple[bytes, bytes]] | None,
        special_tokens: SpecialTokens | Iterable[AddedToken] = None,
        pattern: str | Pretokenizer = "gpt2",
        *,
        ignore_merges: bool | None = None,
        normalizer: Normalizer | Literal["NFC"] | None = None,
        post_processor: PostProcessor | None = None,
        text_rules: TextRules | None = None,
        decoder: Decoder | None = None,
    ) -> None:
        """A tokenizer of these entries and merges; BadTokenizer names the first thing that is wrong with them.

        vocab: id -> bytes, with or without the special tokens. merges: lowest rank first; None for a rank file,
        where the id is the rank and every adjacent pair whose bytes together are an entry may merge. special_tokens:
        as a list they have the id of the entry of their bytes, or the next free ids; AddedTokens have ids and flags.
        pattern: gpt2, cl100k, o200k, llama3, qwen2, or an expression for the `regex` package; text between its matches
        is an UncoveredText.
        ignore_merges: a pretoken that is an entry is emitted at once (default: for rank files only).
        normalizer: applied to the text between special tokens, as Hugging Face tokenizers does it; a
        `bpe.normalizers.Normalizer`, or "NFC".
        post_processor: the begin and end tokens that `encode` adds when it is asked to.
        text_rules: how entries that are text are read; None for a byte-level vocabulary.
        decoder: what becomes of the entries where IDs are decoded; None: they are bytes.
        """
        super().__init__(
            make_parts(
                vocab,
                merges,
                special_tokens,
                pattern,
                ignore_merges=ignore_merges,
                normalizer=normalizer,
                post_processor=post_processor,
                text_rules=text_rules,
                decoder=decoder,
            )
        )

    @classmethod
    def from_parts(cls, parts: Parts) -> Tokenizer:
        """The tokenizer of what a reader gave."""
        tokenizer = cls.__new__(cls)
        Encoding.__init__(tokenizer, parts)
        return tokenizer

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer.from_compiled, (self.compiled(),)

    def __eq__(self, other: object) -> bool:
        """Whether both are the same tokenizer.json; a rank file equals the list of its merges."""
        if self is other:
            return True
        return isinstance(other, Tokenizer) and self.canonical_json == other.canonical_json

    def __hash__(self) -> int:
        return hash((self.vocab_size, self.pattern))

    @cached_property
    def canonical_json(self) -> bytes:
        """The tokenizer.json that `save` writes; equal tokenizers have equal ones."""
        return huggingface.to_json(self)

    def fingerprint(self) -> str:
        """The SHA-256 of the canonical tokenizer.json, the bytes that `save` writes, in hexadecimal."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for piece in huggingface.json_pieces(self):
            digest.update(piece)
        return digest.hexdigest()

    # -- files ---------------------------------------------------------------------------------------------------

    @staticmethod
    def load(
        path: str | Path,
        pattern: str | Pretokenizer | None = None,
        special_tokens: SpecialTokens = None,
        *,
        revision: str | None = None,
    ) -> Tokenizer:
        """Load a tokenizer: tokenizer.json, tekken.json, vocab.json with merges.txt, *.tiktoken, a SentencePiece model,
        or a folder that holds one.

        "org/model" or "org/model@revision" is a repository of the Hugging Face Hub, unless such a path exists; see
        `bpe.hub` for downloads and variables. revision: a branch, tag or commit there.

        pattern: needed for *.tiktoken. For vocab.json it replaces the class that tokenizer_config.json names (see
        `bpe.formats.folder`); without a class the default is gpt2. special_tokens: only with a pattern, or for
        vocab.json without configuration. Other files are complete and take neither.

        One UserWarning lists the bytes that a byte-level vocabulary lacks. BadTokenizer or UnsupportedTokenizer name
        the file and the field, EnvironmentFailure a server that can't be reached. About 1 µs per entry.
        """
        parts = by_path.load(locate(path, revision).path, pattern, special_tokens)
        if warning := warning_of_missing_bytes(parts.vocabulary):
            warnings.warn(f"{path}: {warning}", stacklevel=2)
        return Tokenizer.from_parts(parts)

    @staticmethod
    def from_compiled(image: Buffer) -> Tokenizer:
        """The tokenizer of what `compiled` gave, 20 to 40 ms for 200,000 entries.

        BadTokenizer if it was cut short or changed, or is another version's or another kind of machine's.
        """
        return Tokenizer.from_parts(read_compiled(image))

    def compiled(self) -> bytes:
        """All of this tokenizer as one image that `from_compiled` reads fast: for worker processes. Pickling uses it.

        About 50 bytes an entry. No file format to keep: another version of this package may refuse it.
        """
        return compile_parts(self._parts)

    def save(self, path: str | Path, legacy_merges: bool = False) -> None:
        """Write tokenizer.json; the file appears complete or not at all.

        Hugging Face tokenizers reads the file unless it holds a component of this package's own: the normalizers
        `SentencePiecePrefix` and `SentencePieceCharsmap`, which only come from SentencePiece models with user-defined
        symbols or a charsmap.
        legacy_merges: merges as "a b" texts, which readers from before 2024 need, not as pairs.
        """
        with open_output_file(path) as file:
            for piece in huggingface.json_pieces(self, legacy_merges):
                file.write(piece)

    def export_tiktoken(self, path: str | Path) -> None:
        """Write a rank file, a line `base64(bytes) rank` an entry; it holds no special tokens and no pattern.

        BadTokenizer if ranks can't express this tokenizer's merges (see bpe.formats.tiktoken).
        """
        write_file(path, tiktoken.to_ranks(self))

    def export_gpt2(self, folder: str | Path) -> None:
        """Write GPT-2's vocab.json and merges.txt; they hold no pattern.

        BadTokenizer if they can't express this tokenizer (see bpe.formats.gpt2).
        """
        gpt2.export(self, Path(folder))

    def export_sentencepiece(self, path: str | Path) -> None:
        """Write a SentencePiece model of type BPE; special tokens become control pieces, which it never finds in text.

        UnsupportedTokenizer if such a model can't express this tokenizer (see bpe.formats.sentencepiece).
        """
        write_file(path, sentencepiece_writer.to_model(self))

    # -- decoding ------------------------------------------------------------------------------------------------

    def decode_bytes(self, ids: Iterable[int] | NDArray[Any]) -> bytes:
        """The bytes of the ids, special tokens included; BadArgument names the first id that is not an entry.

        With a `decoder`, the UTF-8 of the text that it makes, but an entry of a byte is that byte.
        """
        if self._decodes_here:
            return self._decoded(ids).encode()
        try:
            return self._encoder.decode(ids if isinstance(ids, (list, np.ndarray)) else list(ids))
        except (ValueError, TypeError, OverflowError) as error:
            raise bad_ids(ids, error) from None

    def decode(self, ids: Iterable[int] | NDArray[Any], errors: str = "replace") -> str:
        """The text of the ids; bytes that are no UTF-8, such as a cut character, become U+FFFD.

        errors: as for bytes.decode; "strict" raises UnicodeDecodeError.
        """
        if self._decodes_here:
            return self._decoded(ids)
        try:
            return self._encoder.decode_text(
                ids if isinstance(ids, (list, np.ndarray)) else list(ids), errors
            )
        except UnicodeDecodeError:
            raise
        except (ValueError, TypeError, OverflowError) as error:
            raise bad_ids(ids, error, errors) from None

    def decode_batch(
        self, rows: Ragged | Iterable[Iterable[int] | NDArray[Any]], errors: str = "replace"
    ) -> list[str]:
        """The text of each row, as `decode` gives it; rows: what `encode_batch` gave, or lists or arrays of ids."""
        if not isinstance(rows, Iterable):
            raise BadArgument(
                f"rows: must be rows of IDs (got {shown(rows)}). Call decode for the IDs of one text."
            )
        if not isinstance(rows, Ragged) or self._decodes_here:
            return [self.decode(row, errors) for row in rows]
        tokens, offsets = tokens_from(rows.tokens), offsets_from(rows.offsets)
        try:
            return self._encoder.decode_rows(tokens, offsets, errors)
        except UnicodeDecodeError:
            raise
        except (ValueError, TypeError) as error:
            raise bad_ids(tokens, error, errors) from None

    @property
    def _decodes_here(self) -> bool:
        """Whether the core does not have the decoder: all of its decoders are for entries that are text."""
        return self.decoder is not None and not (
            TextRules.of_text(self.text_rules) and self.decoder.core_rule
        )

    def _decoded(self, ids: Iterable[int] | NDArray[Any]) -> str:
        entries = []
        is_text = TextRules.of_text(self.text_rules)
        for place, id_ in enumerate(np.asarray(ids).tolist()):
            entry = self.id_to_token(id_) if isinstance(id_, int) else None
            if entry is None:
                raise unknown_id(f"ids[{place}]", id_)
            spelled = self._parts.decoded_tokens.get(id_)
            if spelled is None:
                spelled = entry.decode(errors="replace") if is_text else to_characters(entry)
            entries.append(spelled)
        return self.decoder.apply(entries) if self.decoder is not None else ""
