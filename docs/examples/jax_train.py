"""Data-parallel training with JAX: global arrays over all devices, and exact resuming.

    export JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8
    python docs/examples/jax_train.py corpus.zarr
    python docs/examples/jax_train.py corpus.zarr --resume

Trains a bigram model for 10 steps and saves checkpoint.json after 5.
"""

import argparse
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import flat_tokens
from flat_tokens.jax import global_batches

SEQ_LEN, BATCH_SIZE, STEPS = 64, 16, 10
CHECKPOINT = Path("checkpoint.json")

parser = argparse.ArgumentParser()
parser.add_argument("dataset")
parser.add_argument("--resume", action="store_true")
options = parser.parse_args()

dataset = flat_tokens.open(options.dataset)
loader = flat_tokens.Loader(
    dataset.train, SEQ_LEN, BATCH_SIZE, seed=0, rank=jax.process_index(), world_size=jax.process_count()
)
mesh = Mesh(np.array(jax.devices()), ("data",))
sharding = NamedSharding(mesh, PartitionSpec("data"))
batches = global_batches(loader, sharding, stop=STEPS, fields=("inputs", "targets"))

embedding_key, head_key = jax.random.split(jax.random.key(0))
params = {
    "embedding": 0.02 * jax.random.normal(embedding_key, (dataset.vocab_size, 32)),
    "head": 0.02 * jax.random.normal(head_key, (32, dataset.vocab_size)),
}
if options.resume:
    checkpoint = json.loads(CHECKPOINT.read_text())
    params = {name: jnp.array(values) for name, values in checkpoint["params"].items()}
    batches.load_state_dict(checkpoint["data"])
params = jax.device_put(params, NamedSharding(mesh, PartitionSpec()))


def mean_loss(params, inputs, targets):
    logits = params["embedding"][inputs] @ params["head"]
    has_loss = targets != -100
    log_probs = jax.nn.log_softmax(logits)
    picked = jnp.take_along_axis(log_probs, jnp.where(has_loss, targets, 0)[..., None], axis=-1)
    return -jnp.sum(picked[..., 0] * has_loss) / jnp.sum(has_loss)


@jax.jit
def train_step(params, inputs, targets):
    loss, gradients = jax.value_and_grad(mean_loss)(params, inputs, targets)
    return jax.tree.map(lambda value, gradient: value - 10 * gradient, params, gradients), loss


for step, batch in enumerate(batches, batches.state_dict()["step"]):
    params, loss = train_step(params, batch["inputs"], batch["targets"])
    shards = batch["inputs"].addressable_shards
    print(f"step {step} on {len(shards)} devices, rows {len(shards[0].data)} each, loss {float(loss):.6f}")
    if step == 4:
        saved = {name: np.asarray(values).tolist() for name, values in params.items()}
        CHECKPOINT.write_text(json.dumps({"params": saved, "data": batches.state_dict()}))
