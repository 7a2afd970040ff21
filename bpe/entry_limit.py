"""The longest entry that training makes unless told otherwise.

Without a limit, text that repeats itself makes entries of megabytes, and a vocabulary whose bytes grow with the square
of the text. GPT-2, cl100k, o200k, Llama 3 and Qwen have no entry of more than 128 bytes. The limit lies far above that,
so that vocabularies of ordinary text, with its long lines of spaces and dashes, are those of a training without one
(docs/development/algorithms.md).
"""

from __future__ import annotations

from typing import Final

MAX_TOKEN_BYTES: Final = 4096
