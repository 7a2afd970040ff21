"""What does a normalizer cost, beside encoding the same text without one?

Seconds of processor time of one thread, cold: the caches of an encoder are empty at each turn. "as it is" is the text
of the file, "NFD" the same in that form, so that NFC changes it throughout. `kept` is the speed that is left: the time
without a normalizer, on what the normalizer made of the text and on the text itself, by the time with it. The first
says what normalizing costs; a changed text may be harder or easier to encode. "apply" is the normalizer alone, MB/s of
the text it is given.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable
from dataclasses import replace

import harness

from bpe.normalizers import Bert, Form, Lowercase, Normalizer, Prepend, Replace
from bpe.tokenizer import Tokenizer

NORMALIZERS = {
    "NFC": Normalizer((Form("NFC"),)),
    "NFD": Normalizer((Form("NFD"),)),
    "NFKC": Normalizer((Form("NFKC"),)),
    "Lowercase": Normalizer((Lowercase(),)),
    "Bert": Normalizer((Bert(),)),
    "Prepend, Replace": Normalizer((Prepend("▁"), Replace(" ", "▁"))),
}


def main() -> None:
    options = harness.parse(harness.arguments(__doc__ or ""))
    machine = harness.facts()
    plain = Tokenizer.load(options.tokenizer)
    rows: list[harness.Row] = []
    texts = []
    for path in options.corpus:
        text = harness.read_text(path, options.limit_mb * 1e6)
        texts.append(harness.describe(path, text))
        for form, given in (
            ("as it is", text),
            ("NFD", unicodedata.normalize("NFD", text.decode()).encode()),
        ):
            contenders = {"none": encoding(plain, None, given)}
            for name, normalizer in NORMALIZERS.items():
                contenders[name] = encoding(plain, normalizer, given)
                contenders[f"{name}, before"] = encoding(plain, None, normalizer.apply(given))
                contenders[f"{name}, apply"] = applying(normalizer, given)
            seconds = {
                name: harness.summary(spent, len(given))
                for name, spent in harness.take_turns(contenders, options.turns).items()
            }
            for name in NORMALIZERS:
                spent = seconds[name]
                rows.append(
                    {
                        "text": path.stem,
                        "form": form,
                        "normalizer": name,
                        "mb_per_s": spent["mb_per_s"],
                        "spread": spent["spread"],
                        "apply_mb_per_s": seconds[f"{name}, apply"]["mb_per_s"],
                        "kept_of_result": seconds[f"{name}, before"]["seconds"] / spent["seconds"],
                        "kept_of_text": seconds["none"]["seconds"] / spent["seconds"],
                    }
                )
    harness.save("normalizers", machine, rows, texts, ["processor time of one thread, cold"])


def encoding(plain: Tokenizer, normalizer: Normalizer | None, text: bytes) -> Callable[[], float]:
    """Encodes the text by a new encoder; its seconds."""
    image = plain.compiled()

    def run() -> float:
        cold = Tokenizer.from_parts(replace(Tokenizer.from_compiled(image).parts, normalizer=normalizer))
        started = time.process_time()
        cold.encode_documents(text, checked=True)
        return time.process_time() - started

    return run


def applying(normalizer: Normalizer, text: bytes) -> Callable[[], float]:
    """Normalizes the text in parts of 64 KiB, as encoding does; its seconds."""
    core = normalizer.core
    assert core is not None
    parts = []
    start = 0
    while start < len(text):
        stop = min(start + (64 << 10), len(text))
        while stop < len(text) and text[stop] & 0xC0 == 0x80:
            stop += 1
        parts.append(text[start:stop])
        start = stop

    def run() -> float:
        started = time.process_time()
        for part in parts:
            core.apply(part)
        return time.process_time() - started

    return run


if __name__ == "__main__":
    main()
