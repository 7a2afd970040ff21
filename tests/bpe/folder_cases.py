"""Folders without tokenizer.json, one for each tokenizer class and each way to name tokens.

Run as a program with `transformers` installed, it records the results of AutoTokenizer in folder_cases.json.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import pre_tokenizers

RECORDED = Path(__file__).with_name("folder_cases.json")
TEXTS = [
    "", "  the", "a", " a", "The mill's 2048 I'LL\n\n  x", "e\u0301 \u00e9 ſ 日 😀", "a<extra>b",
    " <extra> <other> <mask> ", "the<tool> <pad></s><s><|endoftext|> the", "<unk> <|padding|>\t<|startoftext|>th",
    "<bos> the▁the",
]  # fmt: skip
MERGES = "t h,Ġ t,th e,Ġt h,Ġth e,i n,Ã ©,Ġ Ġ,Ċ Ċ,' s,1 2,4 8,2 0,20 48".split(",")
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
CLIP_MERGES = ["t h", "t h</w>", "th e</w>", "i n</w>", "Ã ©</w>"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
VOCABULARIES = {
    "GPT2Tokenizer": ["<|endoftext|>"],
    "WhisperTokenizer": ["<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"],
    "CodeGenTokenizer": ["<|endoftext|>"],
    "RobertaTokenizer": ROBERTA,
    "BartTokenizer": ROBERTA,
    "GPTNeoXTokenizer": ["<|endoftext|>", "<|padding|>"],
    "Qwen2Tokenizer": [],
    "CLIPTokenizer": ["<|startoftext|>", "<|endoftext|>"],
}
MODELS: dict[str, dict[str, Any]] = {
    "LlamaTokenizer": {},
    "GemmaTokenizer": {
        "add_dummy_prefix": False, "pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "bos_piece": "<bos>",
        "eos_piece": "<eos>", "user_defined_symbols": ["<mask>", "\n", "\n\n", "<start_of_turn>"],
    },
}  # fmt: skip


def vocabulary(name: str) -> tuple[dict[str, int], list[str]]:
    """Return the vocab.json and the merges of a class."""
    clip = name == "CLIPTokenizer"
    merges = CLIP_MERGES if clip else MERGES
    keys = [*BYTES, *(f"{byte}</w>" for byte in BYTES if clip), *(merge.replace(" ", "") for merge in merges)]
    return {key: id_ for id_, key in enumerate([*keys, *VOCABULARIES[name]])}, merges


def model(name: str) -> bytes:
    """Return the SentencePiece model of a class."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the mill in the inn then thin", "a the in an ant"] * 20), model_writer=written,
        model_type="bpe", vocab_size=300, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, minloglevel=2, hard_vocab_limit=False, **MODELS[name],
    )  # fmt: skip
    return written.getvalue()


def token(text: str, **flags: bool) -> dict[str, Any]:
    """Return a token as a configuration lists it."""
    names = ("lstrip", "rstrip", "single_word", "normalized")
    return {"content": text, **dict.fromkeys(names, False), "special": True, **flags}


def cases() -> dict[str, dict[str, Any]]:
    """Return name -> files of the folder. Bytes are written unchanged, other values as JSON."""
    found: dict[str, dict[str, Any]] = {}
    for name in [*VOCABULARIES, *MODELS]:
        if name in MODELS:
            data = model(name)
            files: dict[str, Any] = {"tokenizer.model": data}
            size = sentencepiece.SentencePieceProcessor(model_proto=data).get_piece_size()
        else:
            vocab, merges = vocabulary(name)
            files = {"vocab.json": vocab, "merges.txt": "\n".join(["#version: 0.2", *merges, ""]).encode()}
            size = len(vocab)
        listed = {
            str(size): token("<extra>", lstrip=True, special=False),
            str(size + 1): token("<tool>", normalized=True, special=False),
            str(size + 2): token("<other>", rstrip=True),
        }
        prefix = {"add_prefix_space": name not in MODELS, "legacy": True}
        ends = {"add_bos_token": True, "add_eos_token": True, "bos_token": "<s>", "eos_token": "</s>"}
        mask = token("<mask>", lstrip=True, normalized=True)
        for kind, config, others in (
            ("plain", {}, {}),
            ("prefix", prefix, {}),
            ("legacy", {"legacy": True}, {}),
            ("ends", ends, {}),
            ("listed", {"added_tokens_decoder": listed, "additional_special_tokens": ["<other>"]}, {}),
            ("extra", {"extra_special_tokens": ["<tool>"], "image_token": "<extra>"}, {}),
            (
                "map",
                {},
                {
                    "added_tokens.json": {"<extra>": size, "<other>": size + 1},
                    "special_tokens_map.json": {
                        "additional_special_tokens": ["<other>", "<tool>"],
                        "mask_token": mask,
                    },
                },
            ),
        ):
            settings = {"tokenizer_config.json": {"tokenizer_class": name, **config}}
            found[f"{name} {kind}"] = files | settings | others
        if name in VOCABULARIES:
            few = {key: id_ for key, id_ in files["vocab.json"].items() if key not in "xyzðļ"}
            few = {key: id_ for id_, key in enumerate(few)}
            fast = {"tokenizer_config.json": {"tokenizer_class": f"{name}Fast"}}
            found[f"{name} few bytes"] = files | fast | {"vocab.json": few}
    return found


def write(folder: Path, files: dict[str, Any]) -> None:
    """Write the folder of a case."""
    for name, value in files.items():
        data = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
        folder.joinpath(name).write_bytes(data)


def by_transformers(folder: Path) -> dict[str, Any]:
    """Return AutoTokenizer's IDs of the texts, and its added tokens by ID."""
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(folder)
    added = theirs.added_tokens_decoder
    return {
        "ids": [theirs(text, add_special_tokens=False).input_ids for text in TEXTS],
        "with ends": [theirs(text).input_ids for text in TEXTS[:2]],
        "added": [
            [str(each), id_, each.special, each.lstrip, each.rstrip, each.single_word, each.normalized]
            for id_, each in sorted(added.items())
        ],
    }


def main() -> None:
    """Record all cases, one per line."""
    lines = []
    for name, files in cases().items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), files)
            lines.append(
                f"{json.dumps(name)}: {json.dumps(by_transformers(Path(folder)), separators=(',', ':'))}"
            )
    Path(sys.argv[1] if len(sys.argv) > 1 else RECORDED).write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
