"""Global arrays on eight simulated devices; skipped without jax: pip install jax."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Any

import pytest

from flat_tokens.storage.layout import ArrayLayout

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed", allow_module_level=True)

PROGRAM = """
import sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import flat_tokens
from flat_tokens.jax import global_batches
train = flat_tokens.open(sys.argv[1]).train
mesh = Mesh(np.array(jax.devices()), ("data",))
sharding = NamedSharding(mesh, PartitionSpec("data"))
names = ("targets", "segment_ids", "positions", "cu_seqlens", "max_seqlen", "lengths")
packed = flat_tokens.PackedSequences(train, 12)
for source in (
    flat_tokens.Loader(train, 12, 16, 3),
    flat_tokens.Mixture([train, packed], [1, 1], 12, 16, 3),
    flat_tokens.Loader(packed, 12, 16, drop_last=False),
):
    for step, batch in enumerate(global_batches(source, sharding, stop=3, fields=names)):
        own = source.batch(step)
        for name in ("targets", "segment_ids", "positions", "cu_seqlens"):
            assert np.array_equal(np.asarray(batch[name]), getattr(own, name)), name
        assert batch["max_seqlen"] == own.max_seqlen and batch["cu_seqlens"].dtype == np.int32
        shards = batch["targets"].addressable_shards
        assert len(shards) == 8 and all(shard.data.shape == (2, 12) for shard in shards)
loader = flat_tokens.Loader(train, 5, 16, 3)
assert tuple(next(global_batches(loader, sharding))) == ("input_ids", "labels")
batches = global_batches(loader, sharding, stop=6, fields=("targets",))
assert batches.state_dict()["step"] == 0
first = [np.asarray(next(batches)["targets"]) for _ in range(3)]
state = batches.state_dict()
rest = [np.asarray(batch["targets"]) for batch in batches]
assert state["step"] == 3 and len(rest) == 3 and batches.state_dict()["step"] == 6 and not list(batches)
for again in (batches, global_batches(loader, sharding, stop=6, fields=("targets",))):
    again.load_state_dict(state)
    found = [np.asarray(batch["targets"]) for batch in again]
    assert len(found) == 3 and all(map(np.array_equal, found, rest))
padded = flat_tokens.Loader(train, 12, 16, 3, drop_last=False)
after = global_batches(padded, sharding, fields=("targets",))
after.load_state_dict(padded.state_at(len(padded) + 1))
assert len(list(after)) == len(padded) - 1
other = global_batches(flat_tokens.Loader(train, 5, 16, 4), sharding)
uneven = global_batches(flat_tokens.Loader(train, 5, 12, 3), sharding)
calls = [lambda state=state: other.load_state_dict(state) for state in (state, {"step": 3}, None)]
for call in (*calls, lambda: next(uneven)):
    try:
        call()
    except flat_tokens.ArgumentError as error:
        print(str(error).partition(":")[0])
"""


@pytest.mark.long
def test_global_arrays(make_dataset: Any, random_sequences: Any) -> None:
    path = make_dataset(random_sequences(1, 120), layout=ArrayLayout.create(2, 16))
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "state\nstate\nstate\nsharding\n"), done.stderr
