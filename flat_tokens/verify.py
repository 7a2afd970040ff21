"""Verification of a whole dataset: its parts, each by flat_tokens/verify_part.py, and the versions that list them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path

from flat_tokens.errors import DatasetError, printable
from flat_tokens.storage.places import Place, Where, locate
from flat_tokens.storage.token_facts import TokenFacts
from flat_tokens.storage.versions import describe_part, listed, place_of, read_version, version_path
from flat_tokens.verify_part import PROBLEMS_KEPT, Progress, VerifyReport, verify_part

__all__ = ["VerifyReport", "verify_dataset"]


def verify_dataset(
    root: Where,
    executor: Executor | None = None,
    progress: Progress | None = None,
    facts: Mapping[str, TokenFacts] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> VerifyReport:
    """Verify the dataset at `root`, a path, URL or Store, and report; damage is in the report, not raised.

    executor: where units run, any concurrent.futures.Executor, the calling thread if None. progress(done, total) is
    called in the calling thread with bytes. facts: of a dataset that was written a moment ago, what
    `write_tokens_with_facts` returned for files of encoded_tokens, by path. Their bytes are read and compared with the
    manifest like all others, and the facts with seq_starts and max_token_id, but they are not decoded: a fifth of the
    time. Without a manifest facts are not used. storage_options: of the store, as for `open`. On a store an object
    takes two requests.
    Of a dataset to which was appended all parts and versions are verified; what no version lists is left alone.
    DatasetError if there is no dataset or its manifest is unreadable: nothing could be compared then. OSError and
    StoreError for trouble of the machine and of the store."""
    place = locate("root", root, storage_options)
    if isinstance(place, Path) and not place.is_dir():
        raise DatasetError(
            f"{printable(str(place))}: {'not a folder' if place.exists() else 'does not exist'}"
        )
    versions = listed(place)
    if versions:
        return _verify_versions(place, versions[-1], executor, progress)
    return verify_part(place, executor, progress, facts or {})


def _verify_versions(
    root: Place, number: int, executor: Executor | None, progress: Progress | None
) -> VerifyReport:
    newest_version = read_version(root, number)
    problems: list[str] = []
    for older in range(1, number):
        try:
            if read_version(root, older).parts != newest_version.parts[: older + 1]:
                problems.append(
                    f"{version_path(older)}: parts must be the first ones of {version_path(number)}. Restore it."
                )
        except DatasetError as error:
            problems.append(str(error))
    reports: list[VerifyReport] = []
    done = 0
    for part in newest_version.parts:

        def advance(part_done: int, part_total: int, before: int = done) -> None:
            if progress is not None:
                progress(before + part_done, before + part_total)

        try:
            reports.append(verify_part(place_of(root, part, number), executor, advance, {}))
            problems += [f"{part.path}/{problem}".lstrip("/") for problem in reports[-1].problems]
            if describe_part(root, part.path) != part:
                problems.append(
                    f"{part.manifest.path}: size and digest differ from {version_path(number)}. Restore it."
                )
            done += reports[-1].byte_count
        except DatasetError as error:
            problems.append(str(error))
    return VerifyReport(
        root,
        True,
        sum(report.file_count for report in reports) + number,
        done,
        sum(report.token_count for report in reports),
        sum(report.seq_count for report in reports),
        tuple(problems)[:PROBLEMS_KEPT],
    )
