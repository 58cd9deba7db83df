#!/usr/bin/env python3
"""Steps in bf16: Frazil beside stock PyTorch's autocast, one vision transformer on one core.

    .deps/torch-python/python tests/bench/steps/bf16_against_torch.py build/bin/bench_pipeline_steps [--model tiny|wide] [--pairs 6]

Runs pairs: one of bench_pipeline_steps --schedule alone and one of stock PyTorch (this file with --torch), in an
order drawn anew each time, both in bf16 and then both in fp32, with one thread and equal model, batch and
micro-batches. PyTorch accumulates gradients over the micro-batches, each forward and loss in a torch.autocast of its
own. Reported: the median of the ratio step of Frazil / step of PyTorch (below 1: Frazil is faster) with a 95 %
bootstrap interval over the pairs, by the clock and in CPU time, which other programs disturb less; and what bf16
gains over fp32 on either side.

A processor without AMX computes bf16 at the speed of its vectors or emulates it, so nothing is measured there and
the exit code is 77, unless --any-processor is given.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time

MODELS = {"tiny": (12, 192, 3, 64), "wide": (8, 384, 6, 32)}
SKIPPED = 77


def train_stock(a):
    """Prints the record of one run of PyTorch."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    blocks, dim, heads, batch = MODELS[a.model]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(dim, 1e-12), nn.LayerNorm(dim, 1e-12)
            self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

        def forward(self, x):
            n, t, d = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, heads, d // heads).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d)
            x = x + self.out(mixed)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Linear(48, dim)
            self.token = nn.Parameter(torch.randn(1, 1, dim))
            self.positions = nn.Parameter(torch.randn(1, 65, dim))
            self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
            self.norm, self.head = nn.LayerNorm(dim, 1e-12), nn.Linear(dim, 10)

        def forward(self, images):
            n = len(images)
            cut = images.view(n, 3, 8, 4, 8, 4).permute(0, 2, 4, 1, 3, 5).reshape(n, 64, 48)
            x = torch.cat([self.token.expand(n, 1, dim), self.patches(cut)], 1) + self.positions
            return self.head(self.norm(self.blocks(x)[:, 0]))

    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    model = Vit()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    seconds, cpu = [], 0
    for step in range(a.steps):
        images, labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
        start, cpu_start = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        for some, own in zip(images.chunk(a.micro_batches), labels.chunk(a.micro_batches)):
            with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
                loss = F.cross_entropy(model(some), own) / a.micro_batches
            loss.backward()
        optimizer.step()
        if step >= a.warmup:
            seconds.append(time.perf_counter() - start)
            cpu += time.process_time() - cpu_start
    print(json.dumps({"median_s": statistics.median(seconds), "cpu_s": cpu / len(seconds)}))


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def interval(values):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(10_000))
    return f"{statistics.median(values):.3f}, 95 % interval {medians[250]:.3f} to {medians[-251]:.3f}"


def compare(a):
    draw = random.Random(a.seed)
    times = {(side, precision): [] for side in ("frazil", "torch") for precision in ("fp32", "bf16")}
    for _ in range(a.pairs):
        for precision in draw.sample(["bf16", "fp32"], 2):
            shape = ["--model", a.model, "--micro-batches", str(a.micro_batches), "--steps", str(a.steps),
                     "--warmup", str(a.warmup), "--precision", precision]
            commands = {"frazil": [a.program, "--schedule", "alone", *shape],
                        "torch": [sys.executable, __file__, "--torch", *shape]}
            for side in draw.sample(list(commands), 2):
                times[side, precision].append(run(commands[side]))
            ours, theirs = (times[side, precision][-1] for side in ("frazil", "torch"))
            print(f"{precision}: step {ours['median_s']:.3f} and {theirs['median_s']:.3f} s, in CPU time "
                  f"{ours['cpu_s']:.3f} and {theirs['cpu_s']:.3f} s", flush=True)
    for precision in ("bf16", "fp32"):
        for what, key in (("step", "median_s"), ("CPU time of a step", "cpu_s")):
            ours, theirs = ([record[key] for record in times[side, precision]] for side in ("frazil", "torch"))
            print(f"{a.model} in {precision}, {what}: Frazil {statistics.median(ours):.4f} s, PyTorch {statistics.median(theirs):.4f} s, "
                  f"Frazil / PyTorch {interval([o / t for o, t in zip(ours, theirs)])}, n = {len(ours)}")
    for side in ("frazil", "torch"):
        gains = [wide["cpu_s"] / narrow["cpu_s"] for wide, narrow in zip(times[side, "fp32"], times[side, "bf16"])]
        print(f"{a.model}: {side}: CPU time of fp32 / bf16 {interval(gains)}")


def has_amx():
    with open("/proc/cpuinfo") as file:
        return " amx_bf16 " in file.read().replace("\n", " \n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="bench_pipeline_steps")
    parser.add_argument("--torch", action="store_true", help="be the side of PyTorch")
    parser.add_argument("--model", choices=MODELS, default="tiny")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16", help="with --torch")
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10, help="warm-up included")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--any-processor", action="store_true", help="measure without AMX too")
    a = parser.parse_args()
    if a.torch:
        return train_stock(a)
    if not a.program:
        parser.error("the following argument is required: program")
    if not has_amx() and not a.any_processor:
        print("skipped: the processor has no amx_bf16 (--any-processor measures all the same)")
        return SKIPPED
    return compare(a)


if __name__ == "__main__":
    sys.exit(main())
