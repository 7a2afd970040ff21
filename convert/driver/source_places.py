"""Whether a dataset has the places of its sequences (seq_places): with `--source-places auto` where they
are small.

How small they are is known when they are written: so they are written beside the tokens, and deleted where they are
more than MOST_SHARE. This follows from the bytes of the arrays alone. It is noted before the first is deleted, for a
run that goes on after an interruption.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from convert.driver.context import Context
from convert.driver.ledger import Ledger
from convert.places.log import without_places_entry
from flat_tokens.format import PLACES_NAME, SPLITS
from flat_tokens.storage.manifest import FileRecord

MOST_SHARE = 0.02  # of the bytes of the other arrays


def without_large_places(context: Context, ledger: Ledger) -> tuple[list[FileRecord], bool]:
    """The files of the arrays, and whether seq_places is one of them; all runs must be written."""
    places = [file for file in ledger.files if file.path.split("/")[1] == PLACES_NAME]
    others = [file for file in ledger.files if file.path.split("/")[1] != PLACES_NAME]
    most = MOST_SHARE * sum(file.bytes for file in others)
    is_large = sum(file.bytes for file in places) > most
    if not ledger.has_places or context.options.source_places == "yes" or not is_large:
        return ledger.files, ledger.has_places
    log, dataset = context.workspace.log, context.workspace.dataset
    log.append([without_places_entry()])
    log.flush()
    if isinstance(dataset, Path):
        for split in SPLITS:
            shutil.rmtree(dataset / split / PLACES_NAME)
    else:
        dataset.delete([file.path for file in places])
    return others, False
