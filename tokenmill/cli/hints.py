"""What a word was meant to be that no command knows: the nearest word, or what other tools call by this name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from tokenmill.errors import shown

# Names that other tools give an option, and ours in their order: of these a command has one or none.
_NAMES: Final[tuple[tuple[frozenset[str], tuple[str, ...]], ...]] = tuple(
    (frozenset(theirs.split()), ours)
    for theirs, ours in (
        (
            "j jobs n-jobs np nproc num-proc num-workers num-threads num-processes processes cpus workers threads",
            ("--workers", "--threads"),
        ),
        (
            "t model tokenizer-path tokenizer-file tokenizer-model tokenizer-name vocab-file",
            ("--tokenizer", "--threads"),
        ),
        (
            "model-prefix out-dir output-dir output-path output-prefix outdir save save-path dest",
            ("--output",),
        ),
        ("f force exist-ok replace", ("--overwrite",)),
        ("silent", ("--quiet",)),
        ("append-eod append-eos add-eos eod eos eos-token", ("--append-token", "--special-token")),
        ("append-bos add-bos bos bos-token", ("--prepend-token", "--special-token")),
        ("user-defined-symbols added-tokens unk-token pad-token", ("--special-token",)),
        ("num-merges num-tokens n-vocab", ("--vocab-size",)),
        ("regex pretokenizer pre-tokenizer split-pattern", ("--pattern",)),
        ("preset normalizer normalization", ("--like",)),
        ("n num count limit lines rows", ("-n",)),
        ("key field json-keys text-column", ("--text-field",)),
        ("format", ("--input-format", "--to", "--from")),
        ("test-size val-ratio valid-size validation-split split", ("--validation-fraction",)),
    )
)
_INPUTS: Final = frozenset(
    (
        "i input inputs input-file input-path input-dir file files data data-path data-dir train-files corpus "
        "dataset text"
    ).split()
)
# Options for which there is something else: names, the option of the commands that this is true of, what to do.
_ADVICE: Final = (
    (
        frozenset({"resume", "restart", "continue"}),
        "--append-to",
        "Run the same command again to resume an interrupted run.",
    ),
    (
        frozenset("seq-len seq-length block-size context-length max-length batch-size pack shuffle".split()),
        "--append-to",
        "Pass it to the loader: Loader(split, seq_len=..., batch_size=...).",
    ),
)


def nearest(word: str, known: Iterable[str]) -> str:
    """ ". Did you mean X?" for the known word that looks most like this one or begins with it, "" if none does."""
    from difflib import get_close_matches

    by_name = {name.lstrip("-"): name for name in known}  # that all begin with dashes says nothing
    bare = word.lstrip("-")
    found = get_close_matches(bare, by_name, 1, 0.6)
    if not found and len(bare) > 1:
        found = [name for name in by_name if name.startswith(bare)][:1]
    return f". Did you mean {by_name[found[0]]}?" if found else ""


def unknown_command(word: str, known: Collection[str], meant_word: str = "") -> str:
    """Return the message for a command that does not exist. meant_word: our name of another tool's command."""
    near = nearest(meant_word or word, known) or f". Choose one of {', '.join(known)}."
    return f"unknown command: {shown(word)}{near}"


def _named_otherwise(option: str, known: Collection[str], inputs: Sequence[str]) -> str:
    """What to do in place of an option of other tools; "" for one that is not known from there."""
    name = option.lstrip("-").replace("_", "-").lower()
    for theirs, ours in _NAMES:
        if name in theirs and (found := next((word for word in ours if word in known), "")):
            return f". Did you mean {found}?"
    for theirs, needed, advice in _ADVICE:
        if name in theirs and needed in known:
            return f". {advice}"
    if inputs and (name in _INPUTS or name == inputs[0].lower()):
        return f". Pass {inputs[0]} without an option."
    return ""


def is_of_other_tools(option: str, known: Collection[str], inputs: Sequence[str]) -> bool:
    """Whether an option is taken for one of another tool, though one of ours begins with it."""
    return bool(_named_otherwise(option, known, inputs))


def meant(option: str, known: Collection[str], inputs: Sequence[str]) -> str:
    """What an option that is not among `known` was meant to be, as the end of a message; "" if nobody knows.

    inputs: what the command calls the words that it takes without an option.
    """
    found = _named_otherwise(option, known, inputs)
    if not found and option[:2] != "--":  # -t, -j8
        if len(option) > 2:
            return meant(option[:2], known, inputs)
        begins = sorted(name for name in known if name.startswith(f"--{option[1]}"))
        return f". Did you mean {' or '.join(begins[:3])}?" if begins else ""
    return found or nearest(option.replace("_", "-"), known)
