"""Train a transformers model, and check that it learns the next token, and the one after if inputs are passed as
input_ids. contract/test_load.py compares the labels of all adapters. Skipped without torch and transformers.

The documents follow a rule: FOLLOWING[t] comes after token t. The model's prediction at each position is compared
with the next token and with the one after.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from small_datasets import write_dataset

import flat_tokens
from flat_tokens import Loader
from flat_tokens.storage.layout import ArrayLayout

for module in ("torch", "transformers"):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")  # from torch and transformers

IDS, SEQ_LEN, ROWS, STEPS = 32, 24, 8, 60
# One cycle through all IDs, so that the next token and the one after always differ.
CYCLE = np.random.default_rng(5).permutation(IDS)
FOLLOWING = np.empty(IDS, np.int64)
FOLLOWING[CYCLE] = np.roll(CYCLE, -1)
Batches = Iterator[dict[str, Any]]


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Any:
    generator = np.random.default_rng(0)
    documents = []
    for length in generator.integers(4, SEQ_LEN, 600).tolist():
        at = int(generator.integers(IDS))
        documents.append([int(CYCLE[(at + i) % IDS]) for i in range(length)])
    path = tmp_path_factory.mktemp("next") / "d"
    write_dataset(path, documents, [], ArrayLayout.create())
    return flat_tokens.open(path).train


def by_batches(train: Any) -> Batches:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    return iter(DataLoader(BatchDataset(Loader(train, SEQ_LEN, ROWS)), batch_size=None))


def accuracies(batches: Batches) -> tuple[float, float]:
    """Train a small GPT-2 for STEPS batches, and return how often its likeliest token is the next one, and the one
    after.
    """
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes: dict[str, Any] = {
        "vocab_size": IDS,
        "n_positions": SEQ_LEN,
        "n_embd": 32,
        "n_layer": 1,
        "n_head": 2,
    }
    without = {"bos_token_id": None, "eos_token_id": None}
    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = GPT2LMHeadModel(GPT2Config(**sizes, **without, **no_dropout))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    for batch in itertools.islice(batches, STEPS):
        loss = model(**{name: torch.as_tensor(values).long() for name, values in batch.items()}).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ids = np.stack([np.roll(CYCLE, -at)[:SEQ_LEN] for at in range(IDS)])
    with torch.no_grad():
        found = model(torch.from_numpy(ids)).logits.argmax(-1).numpy()
    following = FOLLOWING[ids]
    return float((found == following).mean()), float((found == FOLLOWING[following]).mean())


@pytest.mark.slow
def test_a_model_learns_the_next_token(train: Any) -> None:
    following, two_ahead = accuracies(by_batches(train))
    print(f"next token {following:.2f}, two ahead {two_ahead:.2f}")
    assert following > 0.95 > 0.05 > two_ahead
