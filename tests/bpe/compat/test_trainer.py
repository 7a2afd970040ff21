"""Trainers by the interface of tokenizers: what they take, and what of files they see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from bpe.compat import huggingface
from bpe.compat.huggingface.trainers import lines_of
from bpe.errors import InvalidText


def test_lines_of_files_end_with_newlines_alone(tmp_path: Path) -> None:
    """Other ends of lines cut texts, so that other pretokens were counted; in merges.txt, entries."""
    path = tmp_path / "text.txt"
    path.write_bytes(
        "a  \u2028b \x0c c \x85 d\r\n\n x\ry \x1c z\u2029  \n".encode() * 5 + "  tail \u2028b".encode()
    )
    merges = []
    for module in (huggingface, tokenizers):
        tokenizer = module.Tokenizer(module.models.BPE())
        tokenizer.pre_tokenizer = module.pre_tokenizers.ByteLevel(False)
        alphabet = module.pre_tokenizers.ByteLevel.alphabet()
        trainer = module.trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
        tokenizer.train([str(path)], trainer)
        merges.append(json.loads(tokenizer.to_str())["model"]["merges"])
    assert merges[0] == merges[1] != []
    path.write_bytes(b"abc \xff")
    with pytest.raises(InvalidText, match="byte 4"):
        list(lines_of([str(path)]))
    model = huggingface.models.BPE({"\u2028": 0, "a": 1, "\u2028a": 2}, [("\u2028", "a")])
    assert huggingface.models.BPE.from_file(*model.save(str(tmp_path))).merges == [("\u2028", "a")]


@pytest.mark.parametrize(
    "options",
    [
        {"vocab_size": -1},
        {"vocab_size": "a"},
        {"special_tokens": "abc"},
        {"initial_alphabet": "abc"},
        {"min_frequency": None},
        {"limit_alphabet": -1},
        {"max_token_length": 1.5},
    ],
    ids=str,
)
def test_options_that_no_trainer_has(options: Any) -> None:
    with pytest.raises((TypeError, OverflowError)) as theirs:
        tokenizers.trainers.BpeTrainer(**options)
    with pytest.raises(theirs.type):
        huggingface.trainers.BpeTrainer(**options)


def test_a_trained_model_is_saved(tmp_path: Path) -> None:
    """vocab.json and merges.txt of an implementation's, as those of tokenizers."""
    written = []
    for module in (huggingface, tokenizers):
        tokenizer = module.implementations.ByteLevelBPETokenizer()
        tokenizer.train_from_iterator(
            ["the mill stands by the river"] * 3, vocab_size=280, show_progress=False
        )
        paths = tokenizer.save_model(str(tmp_path), module.__name__)
        written.append((json.loads(Path(paths[0]).read_text()), Path(paths[1]).read_text()))
    assert written[0] == written[1]


TEXTS = [
    f"the mill{'er' * (number % 3)} stands by the river \u65e5\u672c{number % 7}" for number in range(40)
]


@pytest.mark.parametrize("name", ["SentencePieceBPETokenizer", "CharBPETokenizer"])
@pytest.mark.parametrize(
    "options", [{}, {"vocab_size": 60, "min_frequency": 3}, {"limit_alphabet": 100}], ids=str
)
def test_implementations_of_text_are_trained_alike(name: str, options: dict[str, Any]) -> None:
    made = []
    for module in (huggingface, tokenizers):
        tokenizer = getattr(module.implementations, name)()
        tokenizer.train_from_iterator(TEXTS, show_progress=False, **options)
        assert tokenizer.decode(tokenizer.encode("the miller").ids) == "the miller"
        assert repr(tokenizer).startswith("Tokenizer(vocabulary_size=")
        root = json.loads(tokenizer.to_str())
        vocab = root["model"].pop("vocab")
        # Letters with a suffix have their ids in any order there, and what hangs on these ties.
        sizes = sorted(vocab.values()), {len(entry) for entry in vocab}
        made.append((root, vocab) if name.startswith("Sentence") else sizes)
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "special_tokens", [["<unk>"], ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]], ids=len
)
def test_text_with_byte_fallback_is_trained_alike(special_tokens: list[str]) -> None:
    made = []
    for module in (huggingface, tokenizers):
        tokenizer = module.Tokenizer(module.models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        tokenizer.pre_tokenizer = module.pre_tokenizers.Metaspace()
        trainer = module.trainers.BpeTrainer(
            vocab_size=400, special_tokens=special_tokens, min_frequency=2, show_progress=False
        )
        tokenizer.train_from_iterator(TEXTS, trainer)
        made.append((json.loads(tokenizer.to_str()), tokenizer.encode("the mill \u0416 stands").ids))
    assert made[0] == made[1]


def test_options_of_implementations_by_place_and_unknown() -> None:
    tokenizer = huggingface.implementations.CharBPETokenizer(suffix="_")
    tokenizer.train_from_iterator(TEXTS, 50, 3, ["<unk>"], 100, [], "_", False)
    assert tokenizer.get_vocab_size() == 50
    assert "r_" in tokenizer.get_vocab()
    with pytest.raises(TypeError, match="train takes vocab_size, .*, got 'sufix'"):
        tokenizer.train_from_iterator(TEXTS, sufix="_")
    with pytest.raises(TypeError, match="got 8 options"):
        tokenizer.train([], *range(8))
