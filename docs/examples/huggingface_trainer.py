"""Hugging Face's Trainer on a tokenmill dataset, in the order of the Trainer or of a Loader.

    python docs/examples/huggingface_trainer.py corpus.zarr
    python docs/examples/huggingface_trainer.py corpus.zarr --order loader --resume

Trains a one-layer GPT-2 for 10 steps on the CPU and saves a checkpoint after 5. --resume continues from it.
"""

import argparse
import os

from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

import flat_tokens
from flat_tokens.torch import BatchDataset, RowDataset, collate

SEQ_LEN, BATCH_SIZE = 64, 8


class LoaderTrainer(Trainer):
    """Passes whole batches to the model unchanged."""

    def get_train_dataloader(self) -> DataLoader:
        assert isinstance(self.train_dataset, BatchDataset)
        return DataLoader(self.train_dataset, batch_size=None)


parser = argparse.ArgumentParser()
parser.add_argument("dataset")
parser.add_argument("--order", choices=("trainer", "loader"), default="trainer", help="default: trainer")
parser.add_argument("--resume", action="store_true")
options = parser.parse_args()
first = 5 if options.resume else 0

dataset = flat_tokens.open(options.dataset)
set_seed(0)
config = GPT2Config(vocab_size=dataset.vocab_size, n_positions=SEQ_LEN, n_embd=32, n_layer=1, n_head=2)
config.update({"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})
model = GPT2LMHeadModel(config)
arguments = TrainingArguments(
    f"run-{options.order}",
    max_steps=10,
    per_device_train_batch_size=BATCH_SIZE,
    ignore_data_skip=options.order == "loader",  # the dataset starts at the right step
    save_steps=5,
    logging_steps=1,
    learning_rate=0.01,
    lr_scheduler_type="constant",
    use_cpu=True,
    report_to=[],
    disable_tqdm=True,
)
if options.order == "trainer":
    trainer = Trainer(
        model,
        arguments,
        data_collator=collate,
        train_dataset=RowDataset(dataset.train, SEQ_LEN),
        eval_dataset=RowDataset(dataset.validation, SEQ_LEN, drop_last=False),
    )
else:
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    loader = flat_tokens.Loader(
        dataset.train, SEQ_LEN, BATCH_SIZE * world_size, seed=0, rank=rank, world_size=world_size
    )
    trainer = LoaderTrainer(
        model,
        arguments,
        data_collator=collate,
        train_dataset=BatchDataset(loader, step=first),
        eval_dataset=RowDataset(dataset.validation, SEQ_LEN, drop_last=False),
    )
trainer.train(resume_from_checkpoint=f"run-{options.order}/checkpoint-5" if options.resume else None)
for entry in trainer.state.log_history:
    if "loss" in entry and entry["step"] > first:
        print(f"step {entry['step']} loss {float(entry['loss']):.6f}")
print(f"evaluation loss {trainer.evaluate()['eval_loss']:.4f}")
