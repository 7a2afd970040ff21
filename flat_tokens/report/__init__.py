"""One self-contained HTML page about a dataset: sizes, lengths, entries, and sequences with their tokens coloured.

`figures` reads, within bounds that do not grow with the dataset, `page` writes HTML in the components of `reports`.
The page needs no network and nothing beside it, and its bytes follow from the dataset and the arguments alone."""

from __future__ import annotations

from flat_tokens.opening import Dataset
from flat_tokens.report.figures import Bounds, gather
from flat_tokens.report.page import render
from flat_tokens.storage.places import name_of

__all__ = ["Bounds", "gather", "render", "report_html"]


def report_html(dataset: Dataset, bounds: Bounds | None = None, name: str | None = None) -> str:
    """The page as text; name: what the page calls the dataset, by default its folder.

    Cost: some 10 s and 300 MB at most with the default bounds, whatever the size of the dataset. DatasetError
    for damage that is met on the way."""
    return render(gather(dataset, bounds or Bounds()), name or name_of(dataset.path))
