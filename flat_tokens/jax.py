"""Global jax.Arrays from the rows that each process reads. Importing this module imports jax.

    loader = Loader(train, seq_len=1024, batch_size=64, rank=jax.process_index(), world_size=jax.process_count())
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    batches = global_batches(loader, sharding, fields=("inputs", "targets"))
    for batch in batches: loss = train_step(batch["inputs"], batch["targets"])

inputs and targets are the shifted pair; the default, input_ids and labels, is for a model that shifts
(flat_tokens/fields.py). segment_ids and positions keep sequences apart in kernels that take them.

A process reads only its own rows. The sharding must place the rows [rank, rank + 1) * batch_size / world_size on the
devices of process `rank`, as a mesh does if its first axis lists the processes in order.

cu_seqlens, int32[segments + 1] of the rows of this process, is on its default device and changes its shape in each
step, for which jit compiles again; max_seqlen is an int.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flat_tokens.adapters import ResumableSteps
from flat_tokens.arguments import invalid
from flat_tokens.errors import ArgumentError
from flat_tokens.fields import DEFAULT, Fields
from flat_tokens.loading.steps import StepBatches
from flat_tokens.rows.batch import Batch

try:
    import jax
except ImportError as error:
    raise ImportError("flat_tokens.jax: JAX is not installed. Run pip install jax.", name="jax") from error


class GlobalBatches(ResumableSteps, Iterator[dict[str, Any]]):
    """Iterator of global batches, made by `global_batches`.

    state_dict() is the same on every process, for any number of processes. load_state_dict(state) resumes there, and
    raises ArgumentError for a state of other batches.
    """

    _sharding: jax.sharding.Sharding
    _batches: Iterator[Batch] | None = None

    def __next__(self) -> dict[str, Any]:
        if self._batches is None:
            self._batches = self._cut.from_step(self._next_step, self._end())
        batch = next(self._batches)
        self._next_step += 1
        return self._assembled(batch)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume where the state was taken. Raise ArgumentError with the first difference."""
        super().load_state_dict(state)
        self._batches = None

    def _assembled(self, batch: Batch) -> dict[str, Any]:
        """The global arrays of the fields. Every process calls it with its own rows of the step."""
        assemble: Any = jax.make_array_from_process_local_data  # untyped in jax
        arrays: dict[str, Any] = {}
        for name, local in self._fields.make(batch, np.int32).items():
            if name in ("cu_seqlens", "max_seqlen"):
                arrays[name] = local if isinstance(local, int) else jax.numpy.asarray(local)
                continue
            shape = (len(batch) * self.loader.world_size, *local.shape[1:])
            try:
                arrays[name] = assemble(self._sharding, local, shape)
            except ValueError as error:
                rows = f"rows of this process {local.shape} do not fit the global shape {shape}"
                got = f"{self._sharding}: {str(error).splitlines()[0]}"
                raise ArgumentError(f"sharding: {rows} (got {got})") from error
        return arrays


def global_batches(
    loader: StepBatches,
    sharding: jax.sharding.Sharding,
    step: int = 0,
    stop: int | None = None,
    *,
    fields: Sequence[str] = DEFAULT,
    ignore_first_labels: bool = True,
) -> GlobalBatches:
    """An iterator of the global batches of the steps [step, stop).

    loader: a Loader or Mixture with the rank and world_size of this process.
    sharding: placement of the global arrays.
    stop: end of the steps (default: None for no end; with drop_last=False, the end of the epoch).
    fields: names of the arrays in a batch (default: input_ids and labels); integers are int32.
    ignore_first_labels: True (default) sets the labels of the first tokens of sequences to -100; False keeps them.
    """
    if not isinstance(sharding, jax.sharding.Sharding):
        raise invalid("sharding", "must be a jax.sharding.Sharding", sharding)
    batches = GlobalBatches(loader, step, stop, Fields(fields, ignore_first_labels), np.int32)
    batches._sharding = sharding
    return batches
