"""The BPE tokenizers of `tokenizers.implementations`: in the manner of GPT-2, of GPT-1 and of SentencePiece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Self

from bpe.compat.huggingface import decoders, pre_tokenizers, processors, trainers
from bpe.compat.huggingface.elsewhere import elsewhere
from bpe.compat.huggingface.models import BPE
from bpe.compat.huggingface.normalizers import NFC, NFD, NFKC, NFKD, BertNormalizer, Lowercase, Sequence
from bpe.compat.huggingface.tokenizer import Tokenizer
from bpe.errors import shown

_FORMS = {"nfc": NFC, "nfd": NFD, "nfkc": NFKC, "nfkd": NFKD}


class BaseTokenizer:
    """A tokenizer by its own name: everything asked of it is asked of the `Tokenizer` within."""

    def __init__(self, tokenizer: Tokenizer, parameters: Mapping[str, Any] | None = None) -> None:
        self.__dict__["_tokenizer"] = tokenizer
        self.__dict__["_parameters"] = dict(parameters or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # where an object is made anew before it has a tokenizer
            raise AttributeError(name)
        return getattr(self._tokenizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._tokenizer, name, value)

    def save_model(self, directory: str, prefix: str | None = None) -> list[str]:
        """Write vocab.json and merges.txt into the folder; their paths."""
        paths: list[str] = self._tokenizer.model.save(directory, prefix)
        return paths

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self._parameters.items())
        return f"Tokenizer(vocabulary_size={self._tokenizer.get_vocab_size()}, {given})"


# Options of a training of text, in the order in which they may be given by place; more follow.
_OF_TEXT: Final[Mapping[str, Any]] = {
    "vocab_size": 30000,
    "min_frequency": 2,
    "special_tokens": ("<unk>",),
    "limit_alphabet": 1000,
    "initial_alphabet": (),
}


class _Trained(BaseTokenizer):
    """A tokenizer that can be read from a model's files, or be trained by options.

    _defaults: the options, in the order in which they may be given by place.
    """

    _defaults: ClassVar[Mapping[str, Any]]

    @classmethod
    def from_file(cls, vocab_filename: str, merges_filename: str, **options: Any) -> Self:
        """The tokenizer of a vocab.json and a merges.txt."""
        vocab, merges = BPE.read_file(vocab_filename, merges_filename)
        return cls(vocab, merges, **options)  # type: ignore[arg-type]  # each has these before its options

    def train(self, files: str | list[str], *args: Any, **options: Any) -> None:
        """Train on the lines of files; options as for train_from_iterator."""
        paths = [files] if isinstance(files, str) else files
        self._tokenizer.train(paths, self._trainer(*args, **options))

    def train_from_iterator(
        self, iterator: Iterable[Any], *args: Any, length: int | None = None, **options: Any
    ) -> None:
        """Train on texts. options: those of BpeTrainer, in the order of the class of that name in tokenizers."""
        self._tokenizer.train_from_iterator(iterator, self._trainer(*args, **options))

    def _trainer(self, *args: Any, **options: Any) -> trainers.BpeTrainer:
        defaults = type(self)._defaults
        if len(args) > len(defaults) or (unknown := options.keys() - defaults):
            what = f"{len(args)} options" if len(args) > len(defaults) else shown(min(unknown))
            raise TypeError(f"train takes {', '.join(defaults)}, got {what}")
        given = dict(defaults) | dict(zip(defaults, args, strict=False)) | options
        return trainers.BpeTrainer(end_of_word_suffix=given.pop("suffix", None), **given)


class ByteLevelBPETokenizer(_Trained):
    """vocab, merges: as for BPE. The rest says what is put around the model."""

    _defaults: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 30000,
        "min_frequency": 2,
        "show_progress": True,
        "special_tokens": (),
        "initial_alphabet": tuple(pre_tokenizers.ByteLevel.alphabet()),
    }

    def __init__(
        self,
        vocab: str | Mapping[str, int] | None = None,
        merges: str | Iterable[tuple[str, str]] | None = None,
        add_prefix_space: bool = False,
        lowercase: bool = False,
        dropout: float | None = None,
        unicode_normalizer: str | None = None,
        continuing_subword_prefix: str | None = None,
        end_of_word_suffix: str | None = None,
        trim_offsets: bool = False,
    ) -> None:
        tokenizer = Tokenizer(
            BPE(
                vocab,
                merges,
                dropout=dropout,
                continuing_subword_prefix=continuing_subword_prefix or "",
                end_of_word_suffix=end_of_word_suffix or "",
            )
        )
        _normalize(tokenizer, unicode_normalizer, [Lowercase()] if lowercase else [])
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
        super().__init__(tokenizer, {"model": "ByteLevelBPE", "add_prefix_space": add_prefix_space})


class CharBPETokenizer(_Trained):
    """The entries are characters and what merges make of them; the last character of a word has a suffix."""

    _defaults: ClassVar[Mapping[str, Any]] = {
        **_OF_TEXT,
        "suffix": "</w>",
        "show_progress": True,
    }

    def __init__(
        self,
        vocab: str | Mapping[str, int] | None = None,
        merges: str | Iterable[tuple[str, str]] | None = None,
        unk_token: Any = "<unk>",
        suffix: str = "</w>",
        dropout: float | None = None,
        lowercase: bool = False,
        unicode_normalizer: str | None = None,
        bert_normalizer: bool = True,
        split_on_whitespace_only: bool = False,
    ) -> None:
        unknown = str(unk_token)
        tokenizer = Tokenizer(
            BPE(vocab, merges, dropout=dropout, unk_token=unknown, end_of_word_suffix=suffix)
        )
        if tokenizer.token_to_id(unknown) is not None:
            tokenizer.add_special_tokens([unknown])
        steps: list[Any] = [BertNormalizer(lowercase=False)] if bert_normalizer else []
        _normalize(tokenizer, unicode_normalizer, steps + [Lowercase()] * lowercase)
        whitespace, words = pre_tokenizers.WhitespaceSplit, pre_tokenizers.BertPreTokenizer
        tokenizer.pre_tokenizer = whitespace() if split_on_whitespace_only else words()
        tokenizer.decoder = decoders.BPEDecoder(suffix=suffix)
        parameters = {
            "model": "BPE",
            "unk_token": unk_token,
            "suffix": suffix,
            "dropout": dropout,
            "lowercase": lowercase,
            "unicode_normalizer": unicode_normalizer,
            "bert_normalizer": bert_normalizer,
            "split_on_whitespace_only": split_on_whitespace_only,
        }
        super().__init__(tokenizer, parameters)


class SentencePieceBPETokenizer(_Trained):
    """Characters, with another one for the space."""

    _defaults: ClassVar[Mapping[str, Any]] = {
        **_OF_TEXT,
        "show_progress": True,
    }

    def __init__(
        self,
        vocab: str | Mapping[str, int] | None = None,
        merges: str | Iterable[tuple[str, str]] | None = None,
        unk_token: Any = "<unk>",
        replacement: str = "\u2581",
        add_prefix_space: bool = True,
        dropout: float | None = None,
        fuse_unk: bool | None = False,
    ) -> None:
        unknown = str(unk_token)
        tokenizer = Tokenizer(BPE(vocab, merges, dropout=dropout, unk_token=unknown, fuse_unk=fuse_unk))
        if tokenizer.token_to_id(unknown) is not None:
            tokenizer.add_special_tokens([unknown])
        tokenizer.normalizer = NFKC()
        scheme = "always" if add_prefix_space else "never"
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=replacement, prepend_scheme=scheme)
        tokenizer.decoder = decoders.Metaspace(replacement=replacement, prepend_scheme=scheme)
        parameters = {
            "model": "SentencePieceBPE",
            "unk_token": unk_token,
            "replacement": replacement,
            "add_prefix_space": add_prefix_space,
            "dropout": dropout,
        }
        super().__init__(tokenizer, parameters)


def _normalize(tokenizer: Tokenizer, form: str | None, others: list[Any]) -> None:
    """Give the tokenizer a Unicode form, if one is named, then the others."""
    steps = [_FORMS[form](), *others] if form else others
    if steps:
        tokenizer.normalizer = steps[0] if len(steps) == 1 else Sequence(steps)


BertWordPieceTokenizer = elsewhere("BertWordPieceTokenizer")
SentencePieceUnigramTokenizer = elsewhere("SentencePieceUnigramTokenizer")
