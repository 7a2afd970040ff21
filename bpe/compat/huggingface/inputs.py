"""What callers give to be encoded. The errors are TypeErrors, as in tokenizers."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe.errors import shown


def check_text(text: Any) -> str:
    """The text; TypeError if it is none that UTF-8 can hold."""
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise no_text(text) from None
        return text
    raise no_text(text)


def no_text(text: Any) -> TypeError:
    """The error for what is no text."""
    if isinstance(text, str):
        place = next(place for place, each in enumerate(text) if 0xD800 <= ord(each) < 0xE000)
        return TypeError(
            f"TextInputSequence must be str that UTF-8 can hold; character {place} ({shown(text[place])}) is a lone "
            "surrogate"
        )
    return TypeError(f"TextInputSequence must be str, got {shown(text)}")


def words_of(words: Any) -> list[str]:
    """The words of a text that is given in words."""
    if not isinstance(words, (list, tuple, np.ndarray)) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"PreTokenizedInputSequence must be Union[List[str], Tuple[str]], got {shown(words)}")
    return [check_text(str(word)) for word in words]


def pair_of(item: Any, is_pretokenized: bool) -> list[Any]:
    """The one or two sequences of an item of a batch."""
    if isinstance(item, str):
        return [item]
    if not isinstance(item, (list, tuple, np.ndarray)):
        raise TypeError(
            f"TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]], got {shown(item)}"
        )
    is_words = is_pretokenized and all(isinstance(word, str) for word in item)
    return [item] if is_words or len(item) != 2 else list(item)
