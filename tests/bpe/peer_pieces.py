"""The pieces that tiktoken and tokenizers cut text into by a pattern: what the readers of both dialects must equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def tiktoken_pieces(expression: str, texts: Iterable[str]) -> Callable[[str], list[str]]:
    """What tiktoken matches of one of the texts; ValueError where it does not read the expression.

    All substrings of the texts are entries, so each match is one id, also the empty one, which tiktoken panics on
    where it is none.
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
    """The matches and what lies between them, as tokenizers' Split isolates them; ValueError where it can't read it."""
    from tokenizers import Regex, pre_tokenizers

    try:
        split = pre_tokenizers.Split(Regex(expression), "isolated")
    except Exception as error:  # tokenizers raises nothing narrower
        raise ValueError(str(error)) from None
    return lambda text: [piece for piece, _ in split.pre_tokenize_str(text)]
