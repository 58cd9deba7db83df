#!/usr/bin/env python3
"""Traces of stock PyTorch 2.11's own profiler in Frazil.

    .deps/torch-python/python tests/interop/check_profiler.py --frazil build/bin/frazil

A small model of unlike layers is trained here under torch.profiler, every layer's forward inside a
named range. Each trace goes through `frazil import kineto` and is read a second time here, by brute
force: the forward of a layer is the time of its ranges, its backward that of the nodes which ran
between the moments when the gradients of its output and of its input were there, noted by hooks.
That takes neither sequence numbers nor any rule of the importer.

1. With the ranges, F and I + W of every layer are those sums within 1 %, the updates together are
   the optimizer's range within 1 %.
2. Without them, the same trace gives layers by operations, named after their modules where the
   trace has Python's stack; put together as in the model, F and I + W are those with ranges within
   5 %.

What is compared comes from one and the same trace, so the machine's noise is on both sides. Only
the pause between two ranges is on one side alone; where other programs fall into it, 2 is judged by
the middle one of three traces. Exit code 0 means that all of it holds.
"""

import argparse
import bisect
import collections
import decimal
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

TOKENS, LENGTH, BATCH, WIDTH, HEADS = 1024, 128, 16, 256, 4
BY_RANGES = 0.01
WITHOUT_RANGES = 0.05
PREFIX = "layer:"


class Embedding(nn.Module):
    modules_in_order = ["Embedding", "Linear"]

    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(TOKENS, 4 * WIDTH)
        self.position = nn.Parameter(torch.randn(LENGTH, 4 * WIDTH))
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.narrow(self.token(x) + self.position)


class Attention(nn.Module):
    modules_in_order = ["LayerNorm", "Linear", "Linear"]

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.split = nn.Linear(WIDTH, 3 * WIDTH)
        self.join = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        query, key, value = (part.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2)
                             for part in self.split(self.norm(x)).chunk(3, -1))
        found = nn.functional.scaled_dot_product_attention(query, key, value)
        return x + self.join(found.transpose(1, 2).reshape(x.shape))


class Mlp(nn.Module):
    modules_in_order = ["LayerNorm", "Linear", "Linear"]

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Convolution(nn.Module):
    modules_in_order = ["Conv1d", "GroupNorm"]

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.norm = nn.GroupNorm(8, WIDTH)

    def forward(self, x):
        return torch.relu(self.norm(self.convolution(x.transpose(1, 2)))).transpose(1, 2)


class Head(nn.Module):
    modules_in_order = ["LayerNorm", "Linear", "CrossEntropyLoss"]

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.words = nn.Linear(WIDTH, TOKENS)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, targets):
        return self.loss(self.words(self.norm(x)).flatten(0, 1), targets.flatten())


OPERATIONS = {"Embedding": "embedding", "Linear": "linear", "LayerNorm": "layer_norm",
              "Conv1d": "conv1d", "GroupNorm": "group_norm",
              "CrossEntropyLoss": "cross_entropy_loss"}


def make_model():
    torch.manual_seed(1)
    return {"embedding": Embedding(), "attention": Attention(), "mlp": Mlp(),
            "convolution": Convolution(), "head": Head()}


def note(name):
    with record_function("gradient of " + name):
        pass


def train(model, optimizer, micro_batches):
    optimizer.zero_grad()
    for _ in range(micro_batches):
        x = torch.randint(TOKENS, (BATCH, LENGTH))
        targets = x.roll(-1, 1)
        for name, layer in model.items():
            with record_function(PREFIX + name):
                x = layer(x, targets) if name == "head" else layer(x)
            x.register_hook(lambda _, name=name: note(name))
        x.backward()
    optimizer.step()


def trace_training(path, micro_batches, **options):
    """Two steps are traced; the first of them is warm-up to the importer."""
    model = make_model()
    parameters = [p for layer in model.values() for p in layer.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    with profile(activities=[ProfilerActivity.CPU],
                 schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
                 on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
                 acc_events=True, **options) as profiler:
        for _ in range(3):
            train(model, optimizer, micro_batches)
            profiler.step()


# ------------------------------------------------- the same trace, read here

class Events:
    """The complete events of the last step, with start and end in ns."""

    def __init__(self, path):
        with (gzip.open(path) if path.suffix == ".gz" else open(path, "rb")) as file:
            self.trace = json.load(file, parse_float=decimal.Decimal)
        events = [e for e in self.trace["traceEvents"] if e.get("ph") == "X"]
        for event in events:
            event["start"] = int(event["ts"] * 1000)
            event["end"] = event["start"] + int(event["dur"] * 1000)
        steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
        assert len(steps) == 2, f"{path}: {len(steps)} steps, not 2"
        step = max(steps, key=lambda e: e["start"])
        self.all = sorted((e for e in events if step["start"] <= e["start"] < step["end"]),
                          key=lambda e: e["start"])

    def named(self, text):
        return [e for e in self.all if e["name"].startswith(text)]


def sum_ranges(events, text):
    """{name without `text`: ns}"""
    sums = collections.Counter()
    for event in events.named(text):
        sums[event["name"][len(text):]] += event["end"] - event["start"]
    return sums


def sum_nodes(events):
    """{layer: ns of the nodes that ran since the gradient of its output was there}"""
    nodes = events.named("autograd::engine::evaluate_function")
    starts = [node["start"] for node in nodes]
    first_nodes = {}
    for mark in events.named("gradient of "):
        place = bisect.bisect(starts, mark["start"]) - 1
        assert mark["end"] <= nodes[place]["end"], f"{mark} is in no node"
        assert place not in first_nodes, f"two marks in {nodes[place]}"
        first_nodes[place] = mark["name"].removeprefix("gradient of ")
    sums = collections.Counter()
    layer = None
    for place, node in enumerate(nodes):
        layer = first_nodes.get(place, layer)
        sums[layer] += node["end"] - node["start"]
    return sums


# ------------------------------------------------- and by Frazil

def import_trace(frazil, path, micro_batches, *flags):
    command = [frazil, "import", "kineto", path, "--out", path.with_suffix(".profile"), "--json",
               "--micro-batch-size", str(BATCH), "--micro-batches", str(micro_batches), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}: {done.stderr}"
    answer = json.loads(done.stdout)
    found = (answer["time"], answer["steps"], answer["steps_dropped"])
    assert found == ("host", 1, 1), f"{path}: {found}"
    share = answer["operations"]["unattributed_share"]
    assert share < 0.01, f"{path}: {share:.2%} of the time is in no layer"
    return answer


def times(layers):
    """(F, I + W)"""
    return (sum(layer["forward_ns"] for layer in layers),
            sum(layer["backward_input_ns"] + layer["backward_weight_ns"] for layer in layers))


def without_ranges(events, path):
    trace = dict(events.trace)
    trace["traceEvents"] = [{key: value for key, value in e.items() if key not in ("start", "end")}
                            for e in trace["traceEvents"]
                            if not e.get("name", "").startswith((PREFIX, "gradient of "))]
    path.write_text(json.dumps(trace, default=float))
    return path


def name_parts(has_modules):
    """{layer: what the importer must call its parts where no range names it}"""
    counts = collections.Counter()
    names = {}
    for layer, module in make_model().items():
        kinds = module.modules_in_order if has_modules else [
            OPERATIONS[kind] for kind in module.modules_in_order]
        names[layer] = []
        for kind in kinds:
            names[layer].append(f"{kind}_{counts[kind]}")
            counts[kind] += 1
    return names


def check_by_ranges(imported, events, micro_batches):
    """The largest difference; what is imported is of one micro-batch."""
    assert imported["layers_by"] == "ranges", imported["layers_by"]
    forward, backward = sum_ranges(events, PREFIX), sum_nodes(events)
    layers = {layer["name"].removeprefix(PREFIX): layer for layer in imported["layers"]}
    assert list(layers) == list(make_model()) == list(forward), f"{list(layers)}"
    differences = {}
    for name, layer in layers.items():
        for what, found, sums in zip("FB", times([layer]), (forward, backward)):
            expected = sums[name] / micro_batches
            assert expected > 1e6, f"{name} takes {expected} ns, too little to be compared"
            differences[name, what] = found / expected - 1
    update = sum(layer["update_ns"] for layer in imported["layers"])
    differences["all", "update"] = update / sum(sum_ranges(events, "Optimizer.step#").values()) - 1
    worst = max(differences, key=lambda key: abs(differences[key]))
    assert abs(differences[worst]) <= BY_RANGES, f"{worst} is {differences[worst]:+.2%} off"
    return abs(differences[worst])


def compare_without_ranges(by_ranges, by_operations, has_modules):
    """{(layer, F or B): the difference}"""
    assert by_operations["layers_by"] == "operations", by_operations["layers_by"]
    parts = name_parts(has_modules)
    layers = {layer["name"]: layer for layer in by_operations["layers"]}
    expected = [name for names in parts.values() for name in names]
    assert list(layers) == expected, f"layers {list(layers)}, not {expected}"
    differences = {}
    for ranged in by_ranges["layers"]:
        name = ranged["name"].removeprefix(PREFIX)
        together = times([layers[part] for part in parts[name]])
        for what, found, want in zip("FB", together, times([ranged])):
            differences[name, what] = found / want - 1
    return differences


def check(frazil, folder, title, micro_batches, **options):
    largest = 0
    differences = collections.defaultdict(list)
    for number, ending in enumerate([".json", ".json.gz", ".json"]):
        path = folder / f"trace{number}{ending}"
        trace_training(path, micro_batches, **options)
        events = Events(path)
        by_ranges = import_trace(frazil, path, micro_batches, "--layer-ranges", PREFIX)
        largest = max(largest, check_by_ranges(by_ranges, events, micro_batches))
        bare = without_ranges(events, folder / f"bare{number}.json")
        has_modules = options.get("with_stack", False)
        by_operations = import_trace(frazil, bare, micro_batches)
        for key, value in compare_without_ranges(by_ranges, by_operations, has_modules).items():
            differences[key].append(value)
    middle = {key: statistics.median(values) for key, values in differences.items()}
    worst = max(middle, key=lambda key: abs(middle[key]))
    print(f"{title}: by ranges at most {largest:.4%} off; without them at most "
          f"{abs(middle[worst]):.2%} ({' '.join(worst)}), in single traces "
          f"{max(abs(v) for values in differences.values() for v in values):.2%}", flush=True)
    assert abs(middle[worst]) <= WITHOUT_RANGES, f"{worst}: {differences[worst]}"


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--frazil", required=True, help="the front door")
    a = p.parse_args()
    assert torch.__version__.startswith("2.11."), f"PyTorch {torch.__version__}, expected 2.11"
    torch.set_num_threads(1)
    for title, micro_batches, options in [
            ("one micro-batch", 1, {}),
            ("three micro-batches, shapes recorded", 3, {"record_shapes": True}),
            ("Python's stack recorded", 1, {"with_stack": True})]:
        with tempfile.TemporaryDirectory() as folder:
            check(a.frazil, pathlib.Path(folder), title, micro_batches, **options)
    print("all of it holds")


if __name__ == "__main__":
    sys.exit(main())
