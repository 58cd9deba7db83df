#!/usr/bin/env python3
# `train --out` always ends with weights.safetensors under Hugging Face's names, and with checkpoints also with one of the last step.
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import MODEL, Training, name_vit, one_line, read_safetensors, tell  # noqa: E402


def check():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        hashes = []
        for out, flags in (("plain", []), ("durable", ["--checkpoint-every", "30"])):
            ended = training.train("--out", out, "--steps", "50", "--json", *flags)
            if ended.returncode:
                return "", f"train exits {ended.returncode}: {one_line(ended.stderr)}"
            hashes.append(json.loads(ended.stdout)["state_hash"])
            weights = training.folder / out / "weights.safetensors"
            if not weights.exists():
                found = sorted(path.name for path in (training.folder / out).iterdir())
                return "", f"no weights.safetensors after 50 steps, but {', '.join(found)}"
            tensors, metadata = read_safetensors(weights)
            shapes = {tensor: shape for tensor, (shape, _) in tensors.items()}
            if shapes != name_vit(MODEL):
                wrong = sorted(set(shapes) ^ set(name_vit(MODEL))) or "shapes"
                return "", f"not the state dict of Hugging Face's ViT: {wrong}"
            if metadata.get("format") != "pt" or metadata.get("steps") != "50":
                return "", f"metadata {metadata}"
        if hashes[0] != hashes[1] or training.texts("plain")["plain/weights.safetensors"] != \
                training.texts("durable")["durable/weights.safetensors"]:
            return "", "checkpoints change the weights"
        kept = sorted(path.name for path in (training.folder / "durable/checkpoints").glob("step-*"))
        if kept != ["step-000000000030.safetensors", "step-000000000050.safetensors"]:
            return "", f"50 steps with a checkpoint every 30 leave {kept}"
        left = [path for path in training.folder.rglob("*.tmp*")]
        return f"weights.safetensors has {len(shapes)} tensors of Hugging Face's ViT; checkpoints of steps 30 and 50", \
            f"left behind: {left}" if left else ""


sys.exit(tell("u1", check))
