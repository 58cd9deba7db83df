"""The handwritten digits of this repository, 8 x 8 pixels of 0 to 16 and a class, as data to train on."""

import csv
import gzip
from pathlib import Path

import frazil

FILE = Path(__file__).resolve().parents[1] / "exec/data/digits.csv.gz"
SIDE = 8


def write_digits(folder, scale=1):
    """FOLDER/train.safetensors and FOLDER/test.safetensors, of every fifth digit: images of one channel, each pixel `scale` x `scale` times."""
    with gzip.open(FILE, "rt") as lines:
        samples = [(_image(row[:-1], scale), int(row[-1])) for row in csv.reader(lines)]
    for name, part in (("train", [one for at, one in enumerate(samples) if at % 5]), ("test", samples[::5])):
        frazil.export_data(part, folder / f"{name}.safetensors", inputs=["pixel_values"])


def _image(numbers, scale):
    """The pixels as [channel, row, column] around 0."""
    pixels = [int(number) / 8 - 1 for number in numbers]
    rows = [[pixel for pixel in pixels[at : at + SIDE] for _ in range(scale)] for at in range(0, SIDE * SIDE, SIDE)]
    return [[row for row in rows for _ in range(scale)]]
