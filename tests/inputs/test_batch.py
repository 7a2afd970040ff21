"""Batches of documents: those that are kept keep their marks."""

from __future__ import annotations

import numpy as np

from tokenmill.inputs.batch import Batch, Marks


def test_marks_go_with_the_documents_that_are_kept() -> None:
    trained, cuts = np.array([[0, 0, 1], [2, 1, 2], [3, 0, 2]]), np.array([[1, 1], [3, 1]])
    marks = Marks(trained, cuts, np.array([False, True, False, True]), False)
    kept = Batch.of([b"a", b"bc", b"de", b"fg"], marks).without(np.array([0, 2]))
    assert bytes(kept.text) == b"bcfg"
    assert kept.marks is not None
    assert kept.marks.trained.tolist() == [[1, 0, 2]]
    assert kept.marks.cuts.tolist() == [[0, 1], [1, 1]]
    assert kept.marks.has_special.tolist() == [True, True]
