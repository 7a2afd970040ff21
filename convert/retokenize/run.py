"""One run: the old dataset's documents, batch by batch, into a new dataset, verified, then given its name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flat_tokens
from bpe import _core
from bpe.end_tokens import EndToken, EndTokens, end_tokens, post_processor_ends
from bpe.tokenizer import Tokenizer
from convert.document_ends import DocumentEnds, recorded_template, recorded_tokens
from convert.driver.provenance import save_tokenizer
from convert.driver.tokenizers import load_tokenizer, tokenizer_of
from convert.errors import BadInput, UsageError, printable
from convert.retokenize.documents import BATCH_TOKENS, Retokenizer, whole_documents
from flat_tokens import ArrayLayout, Dataset
from flat_tokens.exchange.blocks import Block, blocks_of
from flat_tokens.exchange.dataset_writer import SplitWriter, WrittenSplit
from flat_tokens.exchange.unfinished import Unfinished, check_apart
from flat_tokens.format import SPLITS
from flat_tokens.storage.existing_output import not_ours
from flat_tokens.verify import verify_dataset
from flat_tokens.writer import write_root


@dataclass(frozen=True)
class RetokenizeOptions:
    """What to do. from_tokenizer: the one that made the ids, None for the dataset's own; append, prepend: the new end
    tokens by text or id, "none" for none, None for those of the dataset by their texts."""

    dataset: str
    tokenizer: str
    output: Path
    from_tokenizer: str | None = None
    append: str | None = None
    prepend: str | None = None
    threads: int = 1
    layout: ArrayLayout = field(default_factory=ArrayLayout)
    overwrite: bool = False
    storage: Mapping[str, str] = field(default_factory=dict)


def retokenize(options: RetokenizeOptions) -> dict[str, WrittenSplit]:
    """Write the new dataset; what its splits came to. BadInput for documents whose ids do not say their text, or a
    dataset of another tokenizer; UsageError, RefusedError. Nothing is left of a run that fails."""
    check_apart(options.output, [options.dataset, options.tokenizer, options.from_tokenizer])
    dataset = flat_tokens.open(options.dataset, storage_options=options.storage)
    has_mask = any(dataset[split].loss_mask is not None for split in SPLITS)
    old = _old_tokenizer(dataset, options)
    new, source = load_tokenizer(options.tokenizer, options.storage)
    old_ends = _recorded_ends(dataset)
    new_ends, has_template = _new_ends(new, dataset, old_ends, options)
    retokenizer = Retokenizer(old, new, old_ends, new_ends.added, options.threads)
    with (
        Unfinished(options.output, options.overwrite, not_ours) as unfinished,
        tempfile.TemporaryDirectory(prefix="retokenize-") as temporary,
    ):
        root = unfinished.folder
        record, facts = save_tokenizer(new, root, Path(temporary), source)
        written: dict[str, WrittenSplit] = {}
        for split in SPLITS:
            writer = SplitWriter(root, split, options.layout, has_mask=has_mask)
            for block in _blocks(dataset, split, retokenizer):
                writer.add(block)
            written[split] = writer.end()
        counts = {split: found.record.seq_count for split, found in written.items()}
        empty = {split: found.empty_documents for split, found in written.items()}
        write_root(
            root,
            {split: found.record for split, found in written.items()},
            [record, *(file for found in written.values() for file in found.files)],
            options.layout,
            tokenizer=facts,
            sources=[
                {
                    "path": printable(str(dataset.path)),
                    "kind": "dataset",
                    "tokenizer": dataset.tokenizer_record,
                }
            ],
            options={
                **new_ends.added.recorded(),
                **new_ends.recorded(),
                **({"template": True} if has_template else {}),
                "documents": {split: counts[split] + empty[split] for split in SPLITS},
                "empty_documents": empty,
            },
            versions={"tokenmill": _core.__version__},
        )
        verify_dataset(root).require_ok()
        unfinished.publish()
    return written


def _blocks(dataset: Dataset, split: str, retokenizer: Retokenizer) -> Iterator[Block]:
    first = 0
    for batch in whole_documents(blocks_of(dataset[split]), BATCH_TOKENS):
        yield retokenizer.encode(batch, first, split)
        first += len(batch.documents)


def _old_tokenizer(dataset: Dataset, options: RetokenizeOptions) -> Tokenizer:
    """The tokenizer that made the ids: the given one, compared with what the manifest says of it, or the dataset's."""
    facts, given = dataset.tokenizer_record, options.from_tokenizer
    if given is not None:
        tokenizer, source = load_tokenizer(given, options.storage)
        known = {} if facts is None else facts
        if facts is not None and not (
            known.get("fingerprint") == tokenizer.fingerprint()
            or known.get("source_sha256") == source["source_sha256"]
        ):
            raise BadInput(
                f"{printable(given)}: not the tokenizer of {printable(str(dataset.path))} (fingerprint "
                f"{printable(str(known.get('fingerprint')))}). Leave --from-tokenizer out to use the dataset's own."
            )
        return tokenizer
    found = tokenizer_of(dataset)
    if found is None:
        raise UsageError(
            f"{printable(str(dataset.path))}: does not include its tokenizer. Pass it as --from-tokenizer."
        )
    return found


def _recorded(dataset: Dataset) -> dict[str, Any]:
    manifest = dataset.without_sources
    return {} if manifest is None else dict(manifest.options)


def _recorded_ends(dataset: Dataset) -> EndTokens:
    recorded = _recorded(dataset)
    if recorded.get("template"):
        return recorded_template(recorded)
    names = ("prepend_token", "append_token")
    return EndTokens(*(recorded_tokens([recorded.get(name)]) for name in names))


def _new_ends(
    new: Tokenizer, dataset: Dataset, old: EndTokens, options: RetokenizeOptions
) -> tuple[DocumentEnds, bool]:
    """Return the new end tokens, and whether they come from the new tokenizer's template.

    Options come first. Without them a dataset with the tokens of its template gets the tokens of the new template, and
    any other dataset keeps the texts of its end tokens.
    """
    template = post_processor_ends(new)
    if _recorded(dataset).get("template") and options.prepend is None and options.append is None:
        return DocumentEnds(template, template), True
    given = (options.prepend, options.append)
    asked = end_tokens(new, *(None if token == "none" else token for token in given))
    chosen: list[tuple[EndToken, ...]] = []
    for name, token, own, tokens in zip(("prepend", "append"), given, asked, old, strict=True):
        if token is not None:
            chosen.append(own)
            continue
        for end in tokens:
            if end.text not in new.special_tokens:
                raise UsageError(
                    f"--{name}-token: must be given, because {printable(repr(end.text))} ({end.id}), which the dataset "
                    f"adds to each document, is not a special token of {printable(options.tokenizer)}. Pass another "
                    "token or none."
                )
        chosen.append(tuple(EndToken(new.special_tokens[end.text], end.text) for end in tokens))
    return DocumentEnds(EndTokens(*chosen), template), False
