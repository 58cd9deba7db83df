#!/usr/bin/env python3
"""export.py FOLDER: a small vision transformer with random weights, and handwritten digits to train it on.

Leaves model.safetensors, train.safetensors, test.safetensors and run.json in FOLDER, and prints the commands that train. From the tenth
epoch on layers freeze. Takes torch and transformers (examples/requirements.txt).
"""

import argparse
import sys
from pathlib import Path

import torch
from transformers import ViTConfig, ViTForImageClassification

import frazil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import digits  # noqa: E402
import runs  # noqa: E402

SIZES = {"image_size": 8, "patch_size": 2, "num_channels": 1, "hidden_size": 64, "intermediate_size": 256}
LAYERS = {"num_hidden_layers": 6, "num_attention_heads": 4, "hidden_dropout_prob": 0.1}


def loss_of(output, labels):
    return torch.nn.functional.cross_entropy(output.logits, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    digits.write_digits(folder)
    torch.manual_seed(0)
    model = ViTForImageClassification(ViTConfig(**SIZES, **LAYERS, num_labels=10))
    images = torch.randn(4, 1, 8, 8)
    frazil.export_model(model, images, torch.tensor([1, 2, 3, 4]), loss_of, folder / "model.safetensors")
    runs.write_run(
        folder,
        optimizer={"kind": "adamw", "learning_rate": 0.001, "weight_decay": 0.05, "warm_up_steps": 45},
        epochs=12,
        batch_size=32,
        micro_batch_size=8,
        freeze={"policy": {"kind": "alpha", "alpha": 0.333, "start_epoch": 10}},
        cache={"kind": "on"},
    )


if __name__ == "__main__":
    main()
