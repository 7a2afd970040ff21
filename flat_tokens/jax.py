"""Global jax.Arrays from the rows that each process reads; importing this module imports jax.

    loader = Loader(train, seq_len=1024, batch_size=64, rank=jax.process_index(), world_size=jax.process_count())
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    for batch in global_batches(loader, sharding, step=0): loss = train_step(batch["inputs"], batch["targets"])

inputs and targets are the shifted pair; fields=("input_ids", "labels") are unshifted, for a model that shifts
(flat_tokens/fields.py). Labels and targets are -100 where nothing is predicted. segment_ids and positions keep
sequences apart in kernels that take them.

A process reads only its own rows. The sharding must place the rows [rank, rank + 1) * batch_size / world_size on the
devices of process `rank`, as a mesh does whose first axis lists the processes in order.

cu_seqlens, int32[segments + 1] of the rows of this process, is on its default device and has another shape in each
step, for which jit compiles anew; max_seqlen is an int."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import invalid
from flat_tokens.errors import ArgumentError
from flat_tokens.fields import WITH_STARTS, Fields
from flat_tokens.loading.batch import Batch
from flat_tokens.rows.steps import StepBatches, check_loader, steps_range

try:
    import jax
except ImportError as error:
    raise ImportError("flat_tokens.jax: JAX is not installed. Run pip install jax.", name="jax") from error


def _assembled(
    batch: Batch, sharding: jax.sharding.Sharding, batch_size: int, fields: Fields
) -> dict[str, Any]:
    """The arrays of the fields, int32[batch_size, seq_len], is_seq_start bool, all sharded, but for cu_seqlens and
    max_seqlen; every process calls it with its own rows of the step. Cost: one copy to the devices."""
    assemble: Any = jax.make_array_from_process_local_data  # untyped in jax
    arrays: dict[str, Any] = {}
    for name, local in fields.make(batch, np.int32).items():
        if name in ("cu_seqlens", "max_seqlen"):
            arrays[name] = local if isinstance(local, int) else jax.numpy.asarray(local)
            continue
        shape = (batch_size, *local.shape[1:])
        try:
            arrays[name] = assemble(sharding, local, shape)
        except ValueError as error:
            rows = f"rows of this process {local.shape} do not fit the global shape {shape}"
            raise ArgumentError(f"sharding: {rows} (got {sharding}: {str(error).splitlines()[0]})") from error
    return arrays


class GlobalBatches(Iterator[dict[str, Any]]):
    """Made by `global_batches`. state_dict() holds the next step and what the batches follow from, the same on every
    process; load_state_dict goes on there, on any number of processes, and refuses a state of other batches."""

    def __init__(
        self,
        loader: StepBatches,
        sharding: jax.sharding.Sharding,
        step: int,
        stop: int | None,
        fields: Fields,
    ) -> None:
        self._loader = loader
        self._cut = loader.cut_as(np.int32, fields.is_cut_with_labels)
        self._sharding = sharding
        self._fields = fields
        self._next_step, self._stop = steps_range(step, stop)
        self._last_step = loader.last_step(self._next_step)  # the end if stop is None
        self._batches: Iterator[Batch] | None = None

    def __next__(self) -> dict[str, Any]:
        if self._batches is None:
            stop = self._last_step if self._stop is None else self._stop
            stop = None if stop is None else max(self._next_step, stop)
            self._batches = self._cut.from_step(self._next_step, stop)
        batch = next(self._batches)
        self._next_step += 1
        return _assembled(batch, self._sharding, len(batch) * self._loader.world_size, self._fields)

    def state_dict(self) -> dict[str, Any]:
        """Where to go on: small, picklable and made of plain values."""
        return self._loader.state_at(self._next_step) | {"stop": self._last_step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken. ArgumentError names what differs."""
        self._next_step, self._batches = self._loader.step_of(state), None
        self._last_step = state["stop"] if "stop" in state else self._loader.last_step(self._next_step)


def global_batches(
    loader: StepBatches,
    sharding: jax.sharding.Sharding,
    step: int = 0,
    stop: int | None = None,
    *,
    fields: Sequence[str] = WITH_STARTS,
    ignore_first_labels: bool = True,
) -> GlobalBatches:
    """An iterator of the global batches of a Loader or a Mixture of the steps [step, stop), without end if stop is
    None, but with drop_last=False to the end of the epoch. fields: the arrays of a batch. ignore_first_labels: False
    keeps the labels of the first tokens of sequences. It has state_dict() and load_state_dict(state)."""
    check_loader(loader)
    if not isinstance(sharding, jax.sharding.Sharding):
        raise invalid("sharding", "must be a jax.sharding.Sharding", sharding)
    made = Fields(fields, ignore_first_labels)
    return GlobalBatches(loader, sharding, step, stop, made)
