#!/usr/bin/env python3
# A run whose loss, gradients or weights stop being finite exits with code 10 in one sentence and keeps no such weights.
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import Training, one_line, read_safetensors, tell  # noqa: E402

EXPONENT = 0x7F800000
RUNS = range(1, 4)  # of so many steps


def is_finite(data):
    return all(bits & EXPONENT != EXPONENT for (bits,) in struct.iter_unpack("<I", data))


def check():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        # A rate of 1e9 and a momentum that grows: the last step updates weights beyond what float32 holds.
        training.write_run("wild.json", optimizer={"kind": "sgd", "learning_rate": 1e9, "momentum": 0.9,
                                                   "weight_decay": 1e9, "cosine": False})
        said = []
        inputs = "--run wild.json --profile model.json --cluster cluster.json --quiet".split()
        for steps in RUNS:
            ended = training.train("--steps", str(steps), "--json", inputs=inputs)
            if ended.returncode not in (0, 10) or '"loss": null' in ended.stdout:
                return "", f"{steps} steps exit {ended.returncode}: {one_line(ended.stdout[:60] + ended.stderr)}"
        for steps in RUNS:
            out = f"out-{steps}"
            ended = training.train("--out", out, "--steps", str(steps), "--json", "--checkpoint-every", "1", inputs=inputs)
            if '"loss": null' in ended.stdout:
                return "", f"{steps} steps exit {ended.returncode} with \"loss\": null"
            files = sorted((training.folder / out).glob("weights.safetensors")) + \
                sorted((training.folder / out / "checkpoints").glob("step-*.safetensors"))
            for file in files:
                data = file.read_bytes()
                (size,) = struct.unpack("<Q", data[:8])
                if file.name == "weights.safetensors":
                    tensors, _ = read_safetensors(file)
                    finite = all(is_finite(values) for _, values in tensors.values())
                else:
                    finite = is_finite_checkpoint(data, size)
                if not finite:
                    return "", f"{file.name} of a run that exits {ended.returncode} is not finite"
            if ended.returncode == 10:
                said.append(ended.stderr)
                if "step" not in ended.stderr or "diverged" not in ended.stderr or ended.stderr.count("\n") != 1:
                    return "", f"exit 10 says {one_line(ended.stderr)}"
            elif ended.returncode:
                return "", f"{steps} steps of a wild rate exit {ended.returncode}: {one_line(ended.stderr)}"
        if not said:
            return "", "no run diverged"
        # With this rate the loss of step 1 is finite and its gradient is not.
        training.write_run("steep.json", freeze={"alpha": 0}, optimizer={
            "kind": "sgd", "learning_rate": 1e8, "momentum": 0, "weight_decay": 0, "cosine": False})
        inputs[1] = "steep.json"
        steep = training.train("--steps", "2", "--out", "steep", inputs=inputs)
        if steep.returncode != 10 or "step 1 has a gradient of layer" not in steep.stderr:
            return "", f"a gradient that is not finite: exit {steep.returncode}, {one_line(steep.stderr)}"
        return f"{len(said)} of {len(RUNS)} runs exit 10: {one_line(said[0])}", ""


def is_finite_checkpoint(data, size):
    import json
    header = json.loads(data[8:8 + size])
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + size + place for place in entry["data_offsets"])
            if not is_finite(data[begin:end]):
                return False
    return True


sys.exit(tell("d5", check))
