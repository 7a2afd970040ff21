"""The seed inputs of the fuzz targets: a few of each kind, deterministic.

The first bytes of an input are options of its target, which fuzzing changes anyway. The target reads the rest.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Final

TEXTS: Final = (
    "Hello, world! It's 12345 o'clock.\n\n  We'LL see\tHTMLParser\r\n",
    "Ünïcödé, naïve café; Ма́ма мыла раму\u00a0— ёлки.",
    "中文字符和日本語のテキスト。한국어 텍스트 ไทย हिन्दी",
    "e\u0301 \u1100\u1161\u11a8 \ufb01 \u212b \u0f71\u0f72 \u1e9b\u0323 \U0001d15e\u0344",
    "for (int i = 0; i < n; ++i) {\n    a[i] |= 0x1f;\n}\n//---===---\n",
    "<|end|> aaaa aaaaaaaa abababab <|end|><|end|>\n\n\n\n\u2581x\U0001f468\u200d\U0001f469",
    "1,234,567.89 ١٢٣ ½²  \u3000\u2028 '\u017f '\u212a",
)
_JSON_LINES: Final = (
    '{"text": "a \\u00e9\\ud83d\\ude00\\n\\"b\\"", "n": -1.5e+3, "a": [true, false, null, {}]}\n{"text": ""}\n',
    '{"a": {"text": "x"}, "b": [[[]]]}\r\n\n{"a": ["y", ["z"]]}\n["0", {"text": "q"}]\n[{"text": "\\ud800"}]',
    '{"text": "tab\there"}\n{"text": 1, "text": "2"}\n{"t\\u00e9": "yes", "": "empty"} \n{"text": "cut',
)
_MODEL: Final = {
    "version": "1.0",
    "added_tokens": [],
    "model": {
        "type": "BPE",
        "vocab": {"a": 0, "b": 1, "\u0120": 2, "\u00e9": 3, "ab": 4, "\u2581": 5, "\u0120ab": 6},
        "merges": [["a", "b"], ["\u0120", "ab"]],
    },
}

# Dictionary words for inputs of a kind, for libFuzzer's -dict.
WORDS: Final = {
    "json": (
        *(
            '"text"',
            '"model"',
            '"vocab"',
            '"merges"',
            '"a":',
            "null",
            "true",
            "false",
            "\\u00e9",
            "\\ud83d",
            "\\ude00",
        ),
        *(
            "{}",
            "[]",
            '{"',
            '":',
            '",',
            "-1.5e+3",
            "\\\\",
            '\\"',
            "\\u0000",
            "\u0120",
            "\u2581",
            "<0x0A>",
            "2147483648",
        ),
    ),
    "text": (
        *(
            "<|end|>",
            "\n\n",
            "'ll",
            "'S",
            " ",
            "  ",
            "\r\n",
            "123",
            "//",
            "\u00a0",
            "\u0301",
            "\u4e2d",
            "\U0001f600",
        ),
        *("\u3000", "\u2581", "\u1100\u1161", "\u0f71", "\u017f", "ab", "aaaa", "\u200d"),
    ),
    "ranks": ("IQ== 0\n", "==", "= ", " 2147483647\n", " 2147483648", "\r\n", "\t", "AAAA "),
    "bytes": ("\x00\x00\x00\x00", "\x01\x00\x00\x00", "\u00e9", "\u4e2d", "\U0001f600"),
}
KINDS: Final = {
    "json_lines": "json",
    "model_json": "json",
    "rank_file": "ranks",
    **dict.fromkeys(
        (
            "utf8",
            "content_hash",
            "matches",
            "rows",
            "charsmap",
            "stored_ids",
        ),
        "bytes",
    ),
}
# Number of option bytes before the text, for targets that need the whole text.
OPTION_BYTES: Final = {"json_lines": 1, "model_json": 1}


def write_seeds(target: str, folder: Path) -> None:
    """Write the seeds of a target, one file each."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds_of(target)):
        (folder / f"seed-{number}").write_bytes(seed)


def seeds_of(target: str) -> list[bytes]:
    match KINDS.get(target, "text"):
        case "json":
            documents = [json.dumps(_MODEL), json.dumps(_MODEL, ensure_ascii=False, indent=1), *_JSON_LINES]
            flat = json.loads(json.dumps(_MODEL))
            flat["model"]["merges"] = ["a b", "\u0120 ab"]
            texts = [*documents, json.dumps(flat, ensure_ascii=False)]
            return [
                bytes(range(number % 3, number % 3 + 10)) + text.encode() for number, text in enumerate(texts)
            ]
        case "ranks":
            lines = [
                base64.b64encode(text.encode()[: 3 + i]).decode() + f" {i}\n" for i, text in enumerate(TEXTS)
            ]
            return ["".join(lines).encode(), b"IQ== 0\nIg==\t1\r\n\n  Iw== 2147483647", b"IQ= 0\n"]
        case _:
            return [
                bytes((7 * number + place) % 256 for place in range(12)) + text.encode()
                for number, text in enumerate(TEXTS)
            ]


def write_dictionary(target: str, path: Path) -> None:
    words = WORDS[KINDS.get(target, "text")]
    quoted = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in words)
    path.write_text("".join(f'"{word}"\n' for word in quoted))
