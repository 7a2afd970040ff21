"""Global jax.Arrays from the rows that each host reads; importing this module imports jax.

    loader = Loader(train, seq_len=1024, batch_size=64, shard_index=jax.process_index(),
                    shard_count=jax.process_count())
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    for batch in global_batches(loader, sharding, step=0): loss = train_step(batch["inputs"], batch["targets"])

inputs and targets are the shifted pair; fields=("input_ids", "labels") are unshifted, for a model that shifts
(flat_tokens/fields.py). Labels and targets are -100 where nothing is predicted. segment_ids and positions keep
sequences apart in kernels that take them.

A host reads its own rows only. The sharding cuts the rows over devices so that those of host h hold rows
[h, h + 1) * batch_size / host_count, as a mesh whose first axis goes over the processes in order does.

cu_seqlens, int32[segments + 1] of the rows of this process, is on its default device and has another shape in each
step, for which jit compiles anew; max_seqlen is an int."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import shown
from flat_tokens.batch import Batch
from flat_tokens.errors import ArgumentError
from flat_tokens.fields import WITH_STARTS, Fields
from flat_tokens.rows.steps import StepBatches

try:
    import jax
except ImportError as error:
    raise ImportError("flat_tokens.jax needs JAX: pip install jax") from error


def to_global(
    batch: Batch,
    sharding: jax.sharding.Sharding,
    batch_size: int,
    fields: Sequence[str] = WITH_STARTS,
    *,
    ignore_first_labels: bool = True,
) -> dict[str, Any]:
    """The named arrays of a batch of a Loader, int32[batch_size, seq_len], is_seq_start bool, all sharded, but for
    cu_seqlens and max_seqlen; every process calls it with its own rows of the step. Cost: one copy to the devices."""
    return _assembled(batch, sharding, batch_size, Fields(fields, ignore_first_labels))


def _assembled(
    batch: Batch, sharding: jax.sharding.Sharding, batch_size: int, fields: Fields
) -> dict[str, Any]:
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
            text = str(error).splitlines()[0]
            raise ArgumentError(
                f"{local.shape} of {shape} do not fit the sharding {sharding}: {text}"
            ) from error
    return arrays


def global_batches(
    loader: StepBatches,
    sharding: jax.sharding.Sharding,
    step: int = 0,
    stop: int | None = None,
    *,
    fields: Sequence[str] = WITH_STARTS,
    ignore_first_labels: bool = True,
) -> Iterator[dict[str, Any]]:
    """The global batches of a Loader or a Mixture of the steps [step, stop), without end if stop is None, but with
    drop_last=False to the end of the epoch. fields: the arrays of a batch. ignore_first_labels: False keeps the labels
    of the first tokens of sequences. To resume: step=loader.step_of(state), of a state = loader.state_at(step)."""
    if not isinstance(loader, StepBatches):
        raise ArgumentError(f"loader must be a flat_tokens.Loader or a Mixture, got {shown(loader)}")
    if not isinstance(sharding, jax.sharding.Sharding):
        raise ArgumentError(f"sharding must be a jax.sharding.Sharding, got {shown(sharding)}")
    made = Fields(fields, ignore_first_labels)
    stop = loader.last_step(step) if stop is None else stop
    batches = loader.cut_as(np.int32, made.is_cut_with_labels).from_step(step, stop)
    return (_assembled(batch, sharding, len(batch) * loader.host_count, made) for batch in batches)
