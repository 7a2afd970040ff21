"""Pieces of tiktoken and tokenizers for a pattern: the oracles of both dialect readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def tiktoken_pieces(expression: str, texts: Iterable[str]) -> Callable[[str], list[str]]:
    """Return tiktoken's matches in one of the texts. Raise ValueError if it cannot read the expression.

    Every substring of the texts is an entry, so each match is one ID. The empty string is an entry too, since
    tiktoken panics on empty matches without one.
    """
    import tiktoken

    spans = ((text, start) for text in texts for start in range(len(text)))
    entries = {"", *(text[start:stop] for text, start in spans for stop in range(start + 1, len(text) + 1))}
    ranks = {bytes([byte]): byte for byte in range(256)}
    for entry in entries:
        ranks.setdefault(entry.encode(), len(ranks))
    encoding = tiktoken.Encoding("pieces", pat_str=expression, mergeable_ranks=ranks, special_tokens={})
    return lambda text: [encoding.decode([each]) for each in encoding.encode_ordinary(text)]


def tokenizers_pieces(expression: str) -> Callable[[str], list[str]]:
    """Return the matches and the text between them as an isolating Split of tokenizers does. Raise ValueError if it
    cannot read the expression.
    """
    from tokenizers import Regex, pre_tokenizers

    try:
        split = pre_tokenizers.Split(Regex(expression), "isolated")
    except Exception as error:  # tokenizers raises nothing narrower
        raise ValueError(str(error)) from None
    return lambda text: [piece for piece, _ in split.pre_tokenize_str(text)]
