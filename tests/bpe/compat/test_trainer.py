"""`BpeTrainer` learns the vocabulary that the one of tokenizers learns."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tokenizers

from bpe.compat import huggingface
from bpe.compat.huggingface.trainers import lines_of
from bpe.errors import BadTokenizer, InvalidText


def test_lines_of_files_end_with_newlines_alone(tmp_path: Path) -> None:
    """Other line separators cut texts, and entries in merges.txt."""
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


def test_a_trained_model_is_saved(tmp_path: Path) -> None:
    """vocab.json and merges.txt equal the files that tokenizers writes."""
    written = []
    for module in (huggingface, tokenizers):
        tokenizer = module.Tokenizer(module.models.BPE())
        trainer = module.trainers.BpeTrainer(vocab_size=280, show_progress=False)
        tokenizer.train_from_iterator(["the mill stands by the river"] * 3, trainer)
        paths = tokenizer.model.save(str(tmp_path), module.__name__)
        written.append((json.loads(Path(paths[0]).read_text()), Path(paths[1]).read_text()))
    assert written[0] == written[1]


TEXTS = [
    f"the mill{'er' * (number % 3)} stands by the river \u65e5\u672c{number % 7}" for number in range(40)
]


@pytest.mark.promise("compat-huggingface")
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


PRE_TOKENIZERS: dict[str, Any] = {
    "none": lambda each: None,
    "ByteLevel": lambda each: each.ByteLevel(add_prefix_space=False),
    "ByteLevel with a prefix": lambda each: each.ByteLevel(add_prefix_space=True, trim_offsets=False),
    "ByteLevel without regex": lambda each: each.ByteLevel(add_prefix_space=True, use_regex=False),
    "ByteLevel of words": lambda each: each.Sequence([each.WhitespaceSplit(), each.ByteLevel(False)]),
    "Metaspace": lambda each: each.Metaspace(),
    "Metaspace first": lambda each: each.Metaspace(prepend_scheme="first", split=False),
    "Whitespace": lambda each: each.Whitespace(),
}
NORMALIZERS: dict[str, Any] = {
    "none": lambda each: None,
    "NFKC": lambda each: each.NFKC(),
    "accents": lambda each: each.Sequence([each.NFD(), each.StripAccents(), each.Lowercase()]),
    "Llama": lambda each: each.Sequence([each.Prepend("▁"), each.Replace(" ", "▁")]),
    "ByteLevel": lambda each: each.ByteLevel(),
}
# Several of them are spelled by merges, or are letters.
SPECIAL_TOKENS = ["<s>", "</s>", "[UNK]", "the", "a", "mill", "Ġ", "e", "1", "▁the", "Ġthe", "aa", "th", "##"]
PARTS = (
    "the |the|mill |miller |stands |river\n|é|e\u0301|日本語|水車|<s>|</s> |[UNK]|##|a_b |1234 |it's |ﬁ |Ġ|▁| |\t|aaaa"
).split("|")


def drawn_texts(random: Random) -> list[str]:
    """Return a few or many texts, often with fewer than 256 distinct bytes."""
    parts = random.sample(PARTS, random.randint(1, len(PARTS)))
    return [
        "".join(random.choices(parts, k=random.randint(0, 25))) for _ in range(random.choice([0, 1, 3, 30]))
    ]


def drawn_options(random: Random, alphabet: list[str]) -> dict[str, Any]:
    """Return options of a BpeTrainer, including sizes below the alphabet and the number of special tokens."""
    options: dict[str, Any] = {"vocab_size": random.choice([0, 5, 20, 60, 150, 300, 400])}
    choices = {
        "min_frequency": [0, 2, 7],
        "special_tokens": [random.sample(SPECIAL_TOKENS, 6), [f"<extra_{number}>" for number in range(70)]],
        "initial_alphabet": [alphabet, ["a", "日", "xyz"], []],
        "max_token_length": [0, 1, 2, 3, 6],
    }
    return options | {
        name: random.choice(values) for name, values in choices.items() if random.random() < 0.4
    }


def vocabulary(tokenizer: Any) -> dict[str, Any]:
    """Return all properties of the entries."""
    ids = range(max(tokenizer.get_vocab().values(), default=0) + 2)
    return {
        "file": json.loads(tokenizer.to_str()),
        "vocab": tokenizer.get_vocab(),
        "entries": tokenizer.get_vocab(with_added_tokens=False),
        "sizes": [tokenizer.get_vocab_size(), tokenizer.get_vocab_size(with_added_tokens=False)],
        "texts": [tokenizer.id_to_token(id_) for id_ in ids],
        "ids": [tokenizer.token_to_id(text) for text in (*SPECIAL_TOKENS, "mi", "none such")],
    }


def both_trained(
    texts: list[str], options: dict[str, Any], prepare: Any, folder: Path | None = None
) -> list[Any]:
    """Return both tokenizers, trained on texts, or on files in the folder."""
    trained = []
    for module in (huggingface, tokenizers):
        tokenizer = module.Tokenizer(module.models.BPE())
        prepare(module, tokenizer)
        trainer = module.trainers.BpeTrainer(show_progress=False, **options)
        if folder is None:
            tokenizer.train_from_iterator(texts, trainer)
        else:
            paths = [folder / f"{number}.txt" for number in range(len(texts))]
            for path, text in zip(paths, texts, strict=True):
                path.write_bytes(text.encode())
            tokenizer.train(list(map(str, paths)), trainer)
        trained.append(tokenizer)
    return trained


@pytest.mark.slow
@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS)
def test_vocabularies_of_another_size_or_with_other_merges(
    pre_tokenizer: str, normalizer: str, tmp_path: Path
) -> None:
    """ByteLevel without an initial alphabet gave 967 entries instead of vocab_size=800."""

    def prepare(module: Any, tokenizer: Any) -> None:
        tokenizer.pre_tokenizer = PRE_TOKENIZERS[pre_tokenizer](module.pre_tokenizers)
        tokenizer.normalizer = NORMALIZERS[normalizer](module.normalizers)

    for seed in range(4):
        random = Random(seed)
        texts = drawn_texts(random)
        options = drawn_options(random, huggingface.pre_tokenizers.ByteLevel.alphabet())
        ours, theirs = both_trained(texts, options, prepare, tmp_path if seed % 2 == 0 else None)
        assert vocabulary(ours) == vocabulary(theirs), (seed, options)
        with suppress(BadTokenizer):  # the core does not support all of them
            for text in [*texts[:2], "the miller <s> é 日 Ω"]:
                encodings = ours.encode(text), theirs.encode(text)
                assert encodings[0].ids == encodings[1].ids, (seed, options, text)
                assert encodings[0].offsets == encodings[1].offsets, (seed, options, text)
