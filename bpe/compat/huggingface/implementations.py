"""`ByteLevelBPETokenizer`, a tokenizer in the manner of GPT-2; of `tokenizers.implementations` the one for bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bpe.compat.huggingface import decoders, pre_tokenizers, processors, trainers
from bpe.compat.huggingface.elsewhere import elsewhere
from bpe.compat.huggingface.models import BPE
from bpe.compat.huggingface.normalizers import NFC, NFD, NFKC, NFKD, Lowercase, Sequence
from bpe.compat.huggingface.tokenizer import Tokenizer

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


class ByteLevelBPETokenizer(BaseTokenizer):
    """vocab, merges: as for BPE. The rest says what is put around the model."""

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
        steps: list[Any] = [_FORMS[unicode_normalizer]()] if unicode_normalizer else []
        steps += [Lowercase()] if lowercase else []
        if steps:
            tokenizer.normalizer = steps[0] if len(steps) == 1 else Sequence(steps)
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
        super().__init__(tokenizer, {"model": "ByteLevelBPE", "add_prefix_space": add_prefix_space})

    @staticmethod
    def from_file(vocab_filename: str, merges_filename: str, **options: Any) -> ByteLevelBPETokenizer:
        """The tokenizer of a vocab.json and a merges.txt."""
        return ByteLevelBPETokenizer(*BPE.read_file(vocab_filename, merges_filename), **options)

    def train(self, files: str | list[str], *args: Any, **options: Any) -> None:
        """Train on the lines of files; options as for train_from_iterator."""
        paths = [files] if isinstance(files, str) else files
        self._tokenizer.train(paths, _trainer(*args, **options))

    def train_from_iterator(
        self, iterator: Iterable[Any], *args: Any, length: int | None = None, **options: Any
    ) -> None:
        """Train on texts. options: vocab_size, min_frequency, show_progress, special_tokens."""
        self._tokenizer.train_from_iterator(iterator, _trainer(*args, **options))


def _trainer(
    vocab_size: int = 30000,
    min_frequency: int = 2,
    show_progress: bool = True,
    special_tokens: Iterable[Any] = (),
) -> trainers.BpeTrainer:
    return trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        show_progress=show_progress,
        special_tokens=special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )


BertWordPieceTokenizer = elsewhere("BertWordPieceTokenizer")
CharBPETokenizer = elsewhere("CharBPETokenizer")
SentencePieceBPETokenizer = elsewhere("SentencePieceBPETokenizer")
SentencePieceUnigramTokenizer = elsewhere("SentencePieceUnigramTokenizer")
