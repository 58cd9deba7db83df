#!/usr/bin/env python3
"""The trained weights of `frazil train` in Hugging Face's transformers, which knows nothing of Frazil.

    python3 tests/interop/check_weights.py --frazil build/bin/frazil

A small run is trained. The header of its weights.safetensors is read with the standard library alone: it must
have every name and shape of the state dict of `ViTForImageClassification`, no other, and tensors without gaps.
Then transformers loads the file, with no name missing or left over, and evaluates the run's test samples, which
PyTorch draws again from the seed of the run configuration: loss and accuracy must be those that the run answered. A run that starts
from a file that transformers has written has the loss of that model.
Exit code 0 means that all of it holds, 77 that torch or transformers are absent and the header alone was checked.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
PYTHON = TREE / ".deps/torch-python/python"
TOLERANCE = 1e-4  # of the loss: other kernels add in another order
STEPS = 40

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--frazil", default=str(TREE / "build/bin/frazil"))
options = parser.parse_args()
os.environ["FRAZIL"] = str(pathlib.Path(options.frazil).resolve())
sys.path.insert(0, str(TREE / "tests/findings/support"))
from training import MODEL, RUN, Absent, Training, name_vit, read_safetensors  # noqa: E402


def fail(sentence):
    print(f"check_weights.py: {sentence}")
    sys.exit(1)


def find_libraries():
    """torch and transformers, of this Python or of the one that setup_torch.sh makes; none if there are none."""
    try:
        import torch
        import transformers
        return torch, transformers
    except ImportError as error:
        if PYTHON.exists() and "FRAZIL_STOCK_PYTHON" not in os.environ:
            os.environ["FRAZIL_STOCK_PYTHON"] = "1"
            os.execv(PYTHON, [str(PYTHON), *sys.argv])
        print(f"check_weights.py: skipped loading: {error}")
        return None


def draw_test_samples(torch):
    """What make_synthetic in exec/data/dataset.cpp draws: a map, then images and their labels, part by part."""
    data, side = RUN["data"], MODEL["image"]
    generator = torch.Generator().manual_seed(data["seed"])
    pixels = MODEL["channels"] * side * side
    labels_by = torch.randn(pixels, MODEL["classes"], generator=generator)
    for part in ("train_samples", "test_samples"):
        images = torch.randn(data[part], MODEL["channels"], side, side, generator=generator)
    return images, (images.reshape(len(images), -1) @ labels_by).argmax(1)


def configure(transformers):
    return transformers.ViTConfig(
        image_size=MODEL["image"], num_channels=MODEL["channels"], patch_size=MODEL["patch"], hidden_size=MODEL["dim"],
        num_hidden_layers=MODEL["blocks"], num_attention_heads=MODEL["heads"], intermediate_size=4 * MODEL["dim"],
        num_labels=MODEL["classes"])


def judge(torch, model):
    """Loss and accuracy for the run's test samples."""
    model.eval()
    images, labels = draw_test_samples(torch)
    with torch.no_grad():
        logits = model(pixel_values=images).logits
    return (torch.nn.functional.cross_entropy(logits, labels).item(),
            (logits.argmax(1) == labels).double().mean().item())


def evaluate(libraries, path):
    torch, transformers = libraries
    config = configure(transformers)
    # As files of the hub are loaded, whose names version 5 has others for inside.
    folder = path.parent / "vit"
    config.save_pretrained(folder)
    shutil.copy(path, folder / "model.safetensors")
    model, found = transformers.ViTForImageClassification.from_pretrained(folder, output_loading_info=True)
    wrong = {what: sorted(keys) for what, keys in found.items() if keys}
    if wrong:
        fail(f"transformers {transformers.__version__} finds {wrong}")
    return judge(torch, model)


def check_start(libraries, training):
    """A run that starts from a file of transformers and learns nothing has transformers' loss."""
    torch, transformers = libraries
    torch.manual_seed(5)
    model = transformers.ViTForImageClassification(configure(transformers))
    model.save_pretrained(training.folder / "start")
    training.write_run("still.json", optimizer={"groups": [{"match": "*", "weight_decay": 0, "learning_rate_scale": 0}]})
    inputs = "--run still.json --profile model.json --cluster cluster.json --quiet".split()
    started = training.train("--init-from", "start/model.safetensors", "--steps", "1", "--json", inputs=inputs)
    if started.returncode:
        fail(f"train --init-from exits {started.returncode}: {started.stderr}")
    answer, (loss, accuracy) = json.loads(started.stdout), judge(torch, model)
    if abs(loss - answer["loss"]) > TOLERANCE or abs(accuracy - answer["accuracy"]) > 1e-9:
        fail(f"transformers has loss {loss} and accuracy {accuracy}, the run that starts from its file {answer['loss']} and {answer['accuracy']}")
    print(f"check_weights.py: a run that starts from transformers' file has its loss, {loss:.6f}")


def main():
    with tempfile.TemporaryDirectory() as name:
        try:
            training = Training(name)
        except Absent as absent:
            fail(f"found {absent}")
        trained = training.train("--out", "out", "--steps", str(STEPS), "--json")
        if trained.returncode:
            fail(f"train exits {trained.returncode}: {trained.stderr}")
        answer, path = json.loads(trained.stdout), training.folder / "out/weights.safetensors"
        tensors, metadata = read_safetensors(path)
        shapes = {tensor: shape for tensor, (shape, _) in tensors.items()}
        if shapes != name_vit(MODEL) or metadata.get("format") != "pt":
            fail(f"found {sorted(set(shapes) ^ set(name_vit(MODEL))) or metadata}, expected the state dict of a ViT")
        print(f"check_weights.py: {len(shapes)} names and shapes are those of ViTForImageClassification")
        libraries = find_libraries()
        if libraries is None:
            return 77
        loss, accuracy = evaluate(libraries, path)
        if abs(loss - answer["loss"]) > TOLERANCE or abs(accuracy - answer["accuracy"]) > 1e-9:
            fail(f"transformers has loss {loss} and accuracy {accuracy}, the run {answer['loss']} and {answer['accuracy']}")
        print(f"check_weights.py: transformers {libraries[1].__version__} has loss {loss:.6f} and accuracy {accuracy:.4f}, "
              f"the run {answer['loss']:.6f} and {answer['accuracy']:.4f}")
        check_start(libraries, training)
        return 0


sys.exit(main())
