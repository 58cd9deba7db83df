#!/usr/bin/env python3
"""export.py FOLDER: the encoder with a new head of two labels as FOLDER/model.safetensors, a model file (docs/model-file.md).

Takes torch and transformers (examples/requirements.txt).
"""

import argparse
from pathlib import Path

import torch
import transformers

import frazil

INPUTS = ("input_ids", "attention_mask")


def loss_of(output, labels):
    return torch.nn.functional.cross_entropy(output.logits, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="of the new head")
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    model = transformers.BertForSequenceClassification.from_pretrained(given.folder / "model", num_labels=2)
    samples = {name: tensor.torch()[:4] for name, tensor in frazil.read_tensors(given.folder / "train.safetensors").items()}
    inputs = tuple(samples[name] for name in INPUTS)
    path = frazil.export_model(model, inputs, samples["labels"], loss_of, given.folder / "model.safetensors")
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
