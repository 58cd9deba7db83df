#!/usr/bin/env python3
"""export.py FOLDER: a small residual network with batch normalisation, and handwritten digits of 32 x 32 pixels to train it on.

Leaves model.safetensors, train.safetensors, test.safetensors and run.json in FOLDER, and prints the commands that train. Takes torch and
transformers (examples/requirements.txt).
"""

import argparse
import sys
from pathlib import Path

import torch
from transformers import ResNetConfig, ResNetForImageClassification

import frazil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import digits  # noqa: E402
import runs  # noqa: E402

SIZES = {"num_channels": 1, "embedding_size": 16, "hidden_sizes": [16, 32, 64, 64], "depths": [1, 1, 1, 1], "layer_type": "basic"}


def loss_of(output, labels):
    return torch.nn.functional.cross_entropy(output.logits, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    digits.write_digits(folder, scale=4)
    torch.manual_seed(0)
    model = ResNetForImageClassification(ResNetConfig(**SIZES, num_labels=10))
    images = torch.randn(4, 1, 32, 32)
    frazil.export_model(model, images, torch.tensor([1, 2, 3, 4]), loss_of, folder / "model.safetensors")
    runs.write_run(
        folder,
        optimizer={"kind": "sgd", "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.0005, "warm_up_steps": 45},
        epochs=4,
        batch_size=32,
        micro_batch_size=16,
    )


if __name__ == "__main__":
    main()
