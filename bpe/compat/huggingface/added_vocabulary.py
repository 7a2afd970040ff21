"""The added tokens of a tokenizer, numbered as tokenizers numbers them."""

from __future__ import annotations

from collections.abc import Iterable

from bpe.added_tokens import AddedToken as CoreToken
from bpe.compat.huggingface.added_token import FLAGS, AddedToken
from bpe.compat.huggingface.models import BPE


class AddedVocabulary:
    """tokens: id -> token; ids: text -> id; special: the texts that decoding leaves out."""

    def __init__(self) -> None:
        self.tokens: dict[int, AddedToken] = {}
        self.ids: dict[str, int] = {}
        self.special: set[str] = set()

    def take(self, tokens: Iterable[CoreToken]) -> None:
        """Those that a file says, with their ids."""
        for token in tokens:
            self._put(token.id, AddedToken(token.text, **{flag: getattr(token, flag) for flag in FLAGS}))

    def add(self, tokens: Iterable[AddedToken], model: BPE) -> int:
        """Add tokens, or give them other flags; how many were new or changed.

        A token has the id that its text has already, else the next one: behind the model's, or the highest added one.
        """
        size = len(model)
        highest = max(self.tokens, default=-1)
        next_id = highest + 1 if self.tokens and (highest >= size or size == 0) else size
        count = 0
        for token in tokens:
            known = self.ids.get(token.content)
            if not token.content or (known is not None and self.tokens[known] == token):
                continue
            if known is None:
                known = model.token_to_id(token.content)
            if known is None:
                known = next_id
                next_id += 1
            self._put(known, token)
            count += 1
        return count

    def forget(self) -> bool:
        """As read from a file: what was special once, and is no more, is not. Whether there was such a token."""
        special = {token.content for token in self.tokens.values() if token.special}
        changed = special != self.special
        self.special = special
        return changed

    def _put(self, id_: int, token: AddedToken) -> None:
        self.tokens[id_] = token
        self.ids[token.content] = id_
        if token.special:
            self.special.add(token.content)
