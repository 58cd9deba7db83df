#!/usr/bin/env python3
"""export.py FOLDER: the encoder with a new head of two labels as FOLDER/model.safetensors, a model file (docs/model-file.md).

Leaves FOLDER/run.json too, and prints the commands that train: as train_pytorch.py --freeze does, and what the frozen layers put out is kept, so
that they run no more. Takes torch and transformers (examples/requirements.txt).
"""

import argparse
import sys
from pathlib import Path

import torch
import transformers

import frazil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import runs  # noqa: E402

INPUTS = ("input_ids", "attention_mask")


def loss_of(output, labels):
    return torch.nn.functional.cross_entropy(output.logits, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="of the new head, dropout and the order of the samples")
    parser.add_argument("--epochs", type=int, default=4)
    given = parser.parse_args()
    runs.require(parser, given.folder / "model/config.json", "fetch.py")
    runs.require(parser, given.folder / "train.safetensors", "prepare.py")
    torch.manual_seed(given.seed)
    model = transformers.BertForSequenceClassification.from_pretrained(given.folder / "model", num_labels=2)
    samples = {name: tensor.torch()[:4] for name, tensor in frazil.read_tensors(given.folder / "train.safetensors").items()}
    inputs = tuple(samples[name] for name in INPUTS)
    path = frazil.export_model(model, inputs, samples["labels"], loss_of, given.folder / "model.safetensors")
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    runs.write_run(
        given.folder,
        optimizer={"kind": "adamw", "learning_rate": 0.0002, "weight_decay": 0.01, "schedule": "linear", "warm_up_steps": 25},
        epochs=given.epochs,
        batch_size=32,
        micro_batch_size=8,
        seed=given.seed,
        freeze={"policy": {"kind": "alpha", "alpha": 0.333, "start_epoch": 2}},  # 2, 4 and 5 of 6 layers, and the embeddings
        cache={"kind": "on"},
    )


if __name__ == "__main__":
    main()
