#!/usr/bin/env python3
"""export.py FOLDER: a small GPT-2 with random weights, and the pages of this repository to read, byte by byte.

Leaves model.safetensors, train.safetensors, test.safetensors and run.json in FOLDER, and prints the commands that train. The table of tokens is
tied: it is the first layer and the last. Takes torch and transformers (examples/requirements.txt).
"""

import argparse
import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import frazil

TREE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "examples"))
import runs  # noqa: E402

WORDS, TOKENS = 128, 64
SIZES = {"vocab_size": WORDS, "n_positions": TOKENS, "n_embd": 64, "n_layer": 4, "n_head": 4, "bos_token_id": 0, "eos_token_id": 0}


def loss_of(output, labels):
    return torch.nn.functional.cross_entropy(output.logits.transpose(1, 2), labels)


def read_pages():
    """The text of the pages in ASCII; other characters are left out."""
    pages = sorted((TREE / "docs").glob("*.md"))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages).encode("ascii", "ignore")


def cut(text):
    """Samples of consecutive bytes, and as labels the byte that comes after each."""
    return [(list(text[at : at + TOKENS]), list(text[at + 1 : at + TOKENS + 1])) for at in range(0, len(text) - TOKENS, TOKENS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    samples = cut(read_pages())
    for name, part in (("train", [one for at, one in enumerate(samples) if at % 10]), ("test", samples[::10])):
        frazil.export_data(part, folder / f"{name}.safetensors", inputs=["input_ids"])
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**SIZES, use_cache=False))
    words = torch.randint(0, WORDS, (4, TOKENS))
    frazil.export_model(model, words, words, loss_of, folder / "model.safetensors")
    runs.write_run(
        folder,
        optimizer={"kind": "adamw", "learning_rate": 0.003, "weight_decay": 0.01, "warm_up_steps": 50},
        epochs=2,
        batch_size=32,
        micro_batch_size=8,
    )


if __name__ == "__main__":
    main()
