#!/usr/bin/env python3
"""prepare.py FOLDER: what fetch.py left there as data to train on: FOLDER/train.safetensors and FOLDER/test.safetensors.

A line counts if its rating is at least 0.4 away from zero; its label is 1 for a positive rating. The lines are drawn by seed 0: 2,000 to train on,
1,500 others to test with, and so many others as --validation says to choose settings with (tune.py). Texts are 32 tokens of the encoder's own
vocabulary, cut or padded. Takes transformers (examples/requirements.txt).
"""

import argparse
import random
import sys
from pathlib import Path

import frazil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import runs  # noqa: E402

TOKENS = 32
LEAST_RATING = 0.4


def read_reviews(path):
    """Pairs of a text and its label."""
    found = []
    for line in path.read_text(encoding="latin-1").splitlines():
        _, rating, text = line.split("\t")
        if abs(float(rating)) >= LEAST_RATING:
            found.append((text, int(float(rating) > 0)))
    return found


def draw(reviews, sizes, seed):
    """Parts of so many reviews each, which have none in common; a part is what it is whatever comes after it."""
    order = list(range(len(reviews)))
    random.Random(seed).shuffle(order)
    parts = []
    for size in sizes:
        if size > len(order):
            raise SystemExit(f"prepare.py: found {len(reviews)} lines, expected at least {sum(sizes)}")
        parts.append([reviews[at] for at in order[:size]])
        order = order[size:]
    return parts


def make_collate(tokenizer):
    def collate(batch):
        words = tokenizer([text for text, _ in batch], truncation=True, max_length=TOKENS, padding="max_length")
        return {"input_ids": words["input_ids"], "attention_mask": words["attention_mask"], "labels": [label for _, label in batch]}

    return collate


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=2000, help="lines to train on")
    parser.add_argument("--test", type=int, default=1500, help="lines to test with")
    parser.add_argument("--validation", type=int, default=0, help="lines to choose settings with, in validation.safetensors")
    given = parser.parse_args()
    for name in ("model/vocab.txt", "reviews.txt"):
        runs.require(parser, given.folder / name, "fetch.py")
    from transformers import BertTokenizer

    collate = make_collate(BertTokenizer(given.folder / "model/vocab.txt", do_lower_case=True))
    reviews = read_reviews(given.folder / "reviews.txt")
    names = ("train", "test", "validation") if given.validation else ("train", "test")
    for name, part in zip(names, draw(reviews, (given.train, given.test, given.validation), seed=0)):
        data = frazil.export_data(part, given.folder / f"{name}.safetensors", collate=collate)
        positive = sum(label for _, label in part) / len(part)
        print(f"{name}: {data.samples} of {len(reviews)} lines, {positive:.1%} positive, in {', '.join(map(str, data.files))}")


if __name__ == "__main__":
    main()
