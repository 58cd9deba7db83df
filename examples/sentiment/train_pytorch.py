#!/usr/bin/env python3
"""train_pytorch.py FOLDER: the encoder fine-tuned by PyTorch alone on what prepare.py left there, to compare with.

AdamW, 4 epochs of batches of 32, a learning rate that rises for a tenth of the steps and then falls to zero. With --freeze the embeddings and the
first 2, 4 and 5 of the 6 layers stop training, and drop nothing any more, after the epochs 1, 2 and 3. The samples come in the order in which
Frazil takes them. Takes torch and transformers (examples/requirements.txt). Prints the loss and the time of each epoch and the accuracy on the
test samples.
"""

import argparse
import sys
import time
from pathlib import Path

import torch
import transformers

import frazil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import runs  # noqa: E402

EPOCHS, BATCH = 4, 32
RATE = 2e-4
FROZEN_LAYERS = (0, 2, 4, 5)  # by epoch, with --freeze


def read_samples(path):
    return {name: tensor.torch() for name, tensor in frazil.read_tensors(path).items()}


def freeze(model, layers):
    """The embeddings and the first layers in evaluation and without gradients."""
    for part in (model.bert.embeddings, *model.bert.encoder.layer[:layers]):
        part.eval()
        part.requires_grad_(False)


def train_epoch(model, samples, order, optimizer, schedule):
    losses = []
    for rows in order.split(BATCH):
        loss = model(**{name: tensor[rows] for name, tensor in samples.items()}).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def evaluate(model, samples):
    """The share of the samples that get their label."""
    model.eval()
    inputs = {name: tensor.split(100) for name, tensor in samples.items()}
    labels = inputs.pop("labels")
    with torch.no_grad():
        batches = (model(**dict(zip(inputs, batch))).logits for batch in zip(*inputs.values()))
        right = sum((logits.argmax(1) == label).sum().item() for logits, label in zip(batches, labels))
    return right / len(samples["labels"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--freeze", action="store_true", help="freeze layers as training goes on")
    parser.add_argument("--seed", type=int, default=0, help="of the new head, dropout and the order of the samples")
    given = parser.parse_args()
    runs.require(parser, given.folder / "model/config.json", "fetch.py")
    for name in ("train", "test"):
        runs.require(parser, given.folder / f"{name}.safetensors", "prepare.py")
    torch.manual_seed(given.seed)
    model = transformers.BertForSequenceClassification.from_pretrained(given.folder / "model", num_labels=2)
    samples, test = (read_samples(given.folder / f"{name}.safetensors") for name in ("train", "test"))
    steps = EPOCHS * -(-len(samples["labels"]) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
    for epoch in range(EPOCHS):
        model.train()
        if given.freeze and FROZEN_LAYERS[epoch]:
            freeze(model, FROZEN_LAYERS[epoch])
        began = time.perf_counter()
        loss = train_epoch(model, samples, torch.tensor(frazil.sample_order(len(samples["labels"]), given.seed, epoch)), optimizer, schedule)
        print(f"epoch {epoch + 1}: loss {loss:.4f}, {time.perf_counter() - began:.1f} s", flush=True)
    print(f"accuracy {evaluate(model, test):.2%} of {len(test['labels'])} test samples")


if __name__ == "__main__":
    main()
