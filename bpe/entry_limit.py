"""The default maximum length of an entry in training.

Without a limit, repetitive text produces entries of megabytes, and the vocabulary grows with the square of the text. No
entry of GPT-2, cl100k, o200k, Llama 3 or Qwen has more than 128 bytes. The limit is far higher, so it does not change
vocabularies of ordinary text (docs/development/algorithms.md).
"""

from __future__ import annotations

from typing import Final

MAX_TOKEN_BYTES: Final = 4096
