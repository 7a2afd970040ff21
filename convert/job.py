"""What is the same for every task of a conversion; workers are prepared with it (convert/worker.py)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bpe.tokenizer import Tokenizer
from convert.plan import Plan
from convert.rules import IntakeRules
from flat_tokens.storage.layout import ArrayLayout


class Job(NamedTuple):
    """threshold: a document whose hash is below it is validation, 0 to 2^64. decompress_ahead: by a thread beside,
    since there are workers enough that have nothing to do."""

    tokenizer: Tokenizer
    max_token_id: int
    plan: Plan
    separator: bytes
    seed: int
    threshold: int
    rules: IntakeRules
    shards: Path
    dataset: Path
    layout: ArrayLayout
    decompress_ahead: bool = False
