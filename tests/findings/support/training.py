"""A small training with its inputs in a folder, for scripts that go a user's way through `frazil train`."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import time

TREE = pathlib.Path(__file__).resolve().parents[3]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
MODEL = {"image": 8, "channels": 1, "patch": 4, "dim": 16, "blocks": 2, "heads": 2, "classes": 5, "dropout": 0}
RUN = {
    "format": "frazil.run", "version": 1, "model": MODEL,
    "data": {"kind": "synthetic", "train_samples": 64, "test_samples": 16, "seed": 3},
    "epochs": 30, "batch_size": 16, "micro_batch_size": 4, "seed": 1,
    "freeze": {"alpha": 0.5, "start_epoch": 10, "interval_epochs": 10},
}
INPUTS = "--run run.json --profile model.json --cluster cluster.json --quiet".split()


class Absent(Exception):
    """A program or data that the script needs is not there; its text says what."""


class Failed(Exception):
    """A program that is there fails at what the script only needs, or does not give it; its text says how."""


class Training:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.write_run("run.json")
        for program in (pathlib.Path(FRAZIL), pathlib.Path(FRAZIL).parent / "frazil-train"):
            if not program.exists():
                raise Absent(f"no {program}")
        made = self.run("profile", *"--run run.json --devices 2 --rounds 1 --steps 2 --memory-limit 1GiB "
                        "--out model.json --cluster-out cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")

    def write_run(self, name, **changes):
        (self.folder / name).write_text(json.dumps({**RUN, **changes}))

    def run(self, *arguments):
        return subprocess.run([FRAZIL, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300)

    def train(self, *arguments, inputs=INPUTS):
        return self.run("train", *inputs, *arguments)

    def start(self, *arguments, inputs=INPUTS):
        """A training of an hour that goes on beside; when this returns it has done its first steps, or without --out has begun."""
        self.write_run("long.json", epochs=100_000)
        inputs = ["long.json" if word == "run.json" else word for word in inputs]
        process = subprocess.Popen([FRAZIL, "train", *inputs, *arguments], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if "--out" not in arguments:
            wait_until(process, lambda: works(process.pid))
            time.sleep(1)
            return process
        log = self.folder / arguments[arguments.index("--out") + 1] / "events.jsonl"
        wait_until(process, lambda: log.exists() and log.read_text().count('"kind":"step"') > 3)
        return process

    def texts(self, name):
        return {str(path.relative_to(self.folder)): path.read_bytes()
                for path in sorted((self.folder / name).rglob("*")) if path.is_file()}


def wait_until(process, holds):
    """Returns when `holds` does, the process has ended, or a minute is over."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None and not holds():
        time.sleep(0.05)


def works(pid):
    """Whether a process handles SIGINT by itself and has threads for two devices, as a training has in its steps."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = int(status.split("SigCgt:")[1].split()[0], 16)
    return bool(caught >> signal.SIGINT - 1 & 1) and int(status.split("Threads:")[1].split()[0]) > 2


def stop(process, number=signal.SIGINT):
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def one_line(text):
    return " ".join(text.split())


def read_safetensors(path):
    """Names, shapes and bytes of the tensors of a file that is checked to be whole; and its metadata."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    place, tensors = 0, {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        count = 4
        for extent in entry["shape"]:
            count *= extent
        if entry["dtype"] != "F32" or begin != place or end - begin != count:
            raise ValueError(f"{name} is {entry}, expected F32 from byte {place} on")
        tensors[name] = (entry["shape"], data[8 + size + begin:8 + size + end])
        place = end
    if 8 + size + place != len(data):
        raise ValueError(f"{len(data)} bytes, expected {8 + size + place}")
    return tensors, metadata


def name_vit(model):
    """Names and shapes of the state dict of Hugging Face's ViTForImageClassification."""
    dim, tokens = model["dim"], (model["image"] // model["patch"]) ** 2 + 1
    shapes = {
        "vit.embeddings.cls_token": [1, 1, dim],
        "vit.embeddings.position_embeddings": [1, tokens, dim],
        "vit.embeddings.patch_embeddings.projection.weight": [dim, model["channels"], model["patch"], model["patch"]],
        "vit.embeddings.patch_embeddings.projection.bias": [dim],
        "vit.layernorm.weight": [dim], "vit.layernorm.bias": [dim],
        "classifier.weight": [model["classes"], dim], "classifier.bias": [model["classes"]],
    }
    linear = {"attention.attention.query": (dim, dim), "attention.attention.key": (dim, dim),
              "attention.attention.value": (dim, dim), "attention.output.dense": (dim, dim),
              "intermediate.dense": (4 * dim, dim), "output.dense": (dim, 4 * dim)}
    for block in range(model["blocks"]):
        layer = f"vit.encoder.layer.{block}"
        for name, (out, into) in linear.items():
            shapes[f"{layer}.{name}.weight"] = [out, into]
            shapes[f"{layer}.{name}.bias"] = [out]
        for name in ("layernorm_before", "layernorm_after"):
            shapes[f"{layer}.{name}.weight"] = [dim]
            shapes[f"{layer}.{name}.bias"] = [dim]
    return shapes


def tell(row, check):
    """Runs `check`, which returns (what was seen, complaint or ""), prints a line and returns the exit code: 77 where something
    is absent, 1 where there is a complaint or something failed."""
    try:
        seen, complaint = check()
    except Absent as absent:
        print(f"{row}: skipped: {absent}")
        return 77
    except Failed as failed:
        print(f"{row}: {failed}")
        return 1
    print(f"{row}: {complaint or seen}")
    return 1 if complaint else 0
