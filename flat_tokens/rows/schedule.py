"""Values that change at given steps, and batch sizes that do.

A batch size that is one number is a schedule of one entry. A ramp is made of *units*: the greatest common divisor of
its sizes is the batch size that the order of rows is made for, and a batch of k units is the next k of them. So any
step is found at once, hosts see parts of the same batches, and entries that are added behind a step change nothing
before it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import integer, shown
from flat_tokens.errors import ArgumentError
from flat_tokens.loading.batch import Batch

Entries = list[tuple[int, Any]]
LARGEST_BATCH = 2**31  # rows, more than memory holds


def entries_of(name: str, value: Any) -> Entries:
    """[(first_step, item), ...] as given, or a value for all steps as [(0, value)]. ArgumentError unless the steps rise
    from 0."""
    is_schedule = isinstance(value, list | tuple) and all(
        isinstance(entry, list | tuple) and len(entry) == 2 for entry in value
    )
    if not is_schedule or not value:
        return [(0, value)]
    entries = [(integer(f"first step of {name}", first, 0), item) for first, item in value]
    firsts = [first for first, _ in entries]
    if firsts[0] or sorted(set(firsts)) != firsts:
        raise ArgumentError(f"the steps of {name} must rise from 0, got {shown(firsts)}")
    return entries


class BatchSizes:
    """Rows of a global batch by step. batch_size: a number, or [(first_step, batch_size), ...].

    unit: the batch size that the order is made for. is_constant: whether all batches have it."""

    def __init__(self, batch_size: Any) -> None:
        self.entries = [
            (first, integer("batch_size", size, 1)) for first, size in entries_of("batch_size", batch_size)
        ]
        integer("batch_size", max(size for _, size in self.entries), 1, LARGEST_BATCH)
        self.unit = math.gcd(*(size for _, size in self.entries))
        self.is_constant = len(self.entries) == 1
        self._firsts = [first for first, _ in self.entries]
        self._counts = [size // self.unit for _, size in self.entries]
        self._units_before = [0]
        for at in range(1, len(self.entries)):
            units = (self._firsts[at] - self._firsts[at - 1]) * self._counts[at - 1]
            self._units_before.append(self._units_before[-1] + units)

    def size(self, step: int) -> int:
        """Rows of the global batch of a step."""
        return self._counts[self._entry(step)] * self.unit

    def units(self, step: int) -> tuple[int, int]:
        """The units [first, stop) that make the batch of a step."""
        at = self._entry(step)
        first = self._units_before[at] + (step - self._firsts[at]) * self._counts[at]
        return first, first + self._counts[at]

    def past(self, step: int) -> list[list[int]]:
        """What a state that is taken in front of `step` has to remember: the entries before it, as lists; none where
        all batches are of one unit."""
        found = [[first, size] for first, size in self.entries if first < step or not first]
        return [] if found == [[0, self.unit]] else found

    def _entry(self, step: int) -> int:
        return bisect_right(self._firsts, step) - 1


def interleaved(units: Sequence[Batch]) -> Batch:
    """One batch of several units: row i of each, then row i + 1. So the rows of hosts, one under the other, are the
    same batch for any number of hosts."""
    if len(units) == 1:
        return units[0]

    def joined(name: str) -> Any:
        arrays = [getattr(unit, name) for unit in units]
        if arrays[0] is None:
            return None
        return np.stack(arrays, axis=1).reshape(-1, *arrays[0].shape[1:])

    return Batch(*map(joined, ("inputs", "ids", "is_seq_start", "lengths", "cut_labels", "trained")))
