"""A standalone HTML page about a dataset: sizes, lengths, entries, and sequences with colored tokens.

`figures` reads a bounded part of the dataset, and `page` writes HTML with the components of `tokenmill.html`. The bytes
of the page follow from the dataset and the arguments alone.
"""

from __future__ import annotations

from flat_tokens.opening import Dataset
from flat_tokens.report.figures import Bounds, gather
from flat_tokens.report.page import render
from flat_tokens.storage.places import name_of

__all__ = ["Bounds", "report_html"]


def report_html(dataset: Dataset, bounds: Bounds | None = None, name: str | None = None) -> str:
    """Return the page.

    name: name of the dataset on the page (default: the last part of its path).

    Cost: at most about 10 s and 300 MB with the default bounds. Raise DatasetError for damage that is found.
    """
    return render(gather(dataset, bounds or Bounds()), name or name_of(dataset.path))
