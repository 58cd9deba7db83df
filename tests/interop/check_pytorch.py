#!/usr/bin/env python3
"""Schedules of Frazil in stock PyTorch 2.11, and PyTorch's in Frazil.

    .deps/torch-python/python tests/interop/check_pytorch.py \\
        --frazil build/bin/frazil --reader build/bin/print_pytorch_csv

1. Every schedule of Frazil's menu that PyTorch can say is exported in both dialects and run by
   _PipelineScheduleRuntime over gloo, in 2 and in 4 processes, on a small model. Losses and
   gradients must have the very bits of the same model in one process that takes the micro-batches
   one after another: all these schedules compute the weight gradients of a stage in ascending
   order of micro-batches, so even the additions are the same.
2. PyTorch's own simulator runs the exported messages to their end.
3. What PyTorch's schedules dump in both dialects is read by Frazil action for action; where both
   have a schedule, they make the same actions.

PyTorch's 1F1B has no part in 3: its listing starts the last rank at micro-batch 1, which PyTorch
itself refuses. Exit code 0 means that all of it holds; nothing is ever skipped.
"""

import argparse
import csv
import datetime
import multiprocessing
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import warnings

warnings.filterwarnings("ignore", "Failed to initialize NumPy")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.pipelining import PipelineStage, schedules  # noqa: E402

# Our schedules, and stages per rank.
OURS = [("gpipe", 1), ("1f1b", 1), ("eager-1f1b", 1), ("zb-h1", 1), ("zb-h2", 1), ("zb-1p", 1),
        ("zb-2p", 1), ("2bp", 1), ("interleaved-1f1b", 2), ("interleaved-1f1b", 3),
        ("looped-bfs", 2), ("interleaved-zb", 2), ("zb-v", 2), ("zb-v-auto", 2), ("v-half", 2),
        ("v-min", 2), ("dualpipev", 2), ("hanayo", 2), ("hanayo", 4)]
# PyTorch's, stages per rank, and ours of the same actions. (Its LoopedBFS runs backwards from the
# last micro-batch to the first, ours from the first.)
TORCHS = [("GPipe", 1, "gpipe"), ("LoopedBFS", 2, None),
          ("Interleaved1F1B", 2, "interleaved-1f1b"), ("Interleaved1F1B", 3, "interleaved-1f1b"),
          ("InterleavedZeroBubble", 1, "zb-h1"), ("InterleavedZeroBubble", 2, "interleaved-zb"),
          ("ZBVZeroBubble", 2, "zb-v"), ("DualPipeV", 2, "dualpipev")]
SIZES = [(2, 4), (4, 8)]  # ranks, micro-batches
DIALECTS = ["compute_only", "compute_comms"]
WIDTH = 16
SAMPLES = 4  # of a micro-batch
LIMIT = 240  # seconds for all schedules of one size


class Programs:
    def __init__(self, frazil, reader, folder):
        self.frazil, self.reader, self.folder = frazil, reader, pathlib.Path(folder)

    def export(self, schedule, chunks, ranks, micro_batches, dialect):
        path = self.folder / f"{schedule}-{chunks}-{ranks}-{dialect}.csv"
        command = [self.frazil, "export", "--to", "pytorch-csv", "--schedule", schedule, "--stages",
                   str(ranks), "--micro-batches", str(micro_batches), "--chunks", str(chunks)]
        self._run(command + ["--out", path] + ["--comms"] * (dialect == "compute_comms"))
        return path

    def read(self, path):
        return self._run([self.reader, path])

    @staticmethod
    def _run(command):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: exit code {done.returncode}: {done.stderr}"
        return done.stdout


def read_rows(path):
    """As PyTorch reads them."""
    with open(path, newline="") as file:
        return [[schedules._Action.from_str(cell) for cell in row] for row in csv.reader(file)]


def parts(row):
    """The actions of a row, pairs taken apart, bubbles left out."""
    for action in row:
        if action is not None:
            yield from action.sub_actions or (action,)


def stages_of(row):
    return sorted({action.stage_index for action in parts(row)})


# ------------------------------------------------- one model, in one process and in several

class Block(nn.Module):
    """One stage, with weights that no other stage has."""

    def __init__(self, stage):
        super().__init__()
        torch.manual_seed(stage)
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))


def make_batch(micro_batches):
    generator = torch.Generator().manual_seed(1)
    shape = (micro_batches * SAMPLES, WIDTH)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def train_in_one_process(stages, micro_batches):
    """Losses, and the blocks with the mean gradient over the micro-batches."""
    blocks = [Block(stage) for stage in range(stages)]
    losses = []
    for x, y in zip(*(whole.chunk(micro_batches) for whole in make_batch(micro_batches))):
        loss = nn.functional.mse_loss(nn.Sequential(*blocks)(x), y)
        loss.backward()
        losses.append(loss.item())
    for block in blocks:
        for parameter in block.parameters():
            parameter.grad /= micro_batches
    return losses, blocks


class StageWithoutGreeting(PipelineStage):
    """Stock stages greet their neighbours before the first step. Where two neighbours share a rank,
    it would greet itself, which gloo refuses; gloo needs no greeting."""

    def _get_init_p2p_neighbors_ops(self):
        return []


def make_stages(rows, rank):
    places = [stages_of(row) for row in rows]
    is_folded = any(b - a == 1 for place in places for a, b in zip(place, place[1:]))
    kind = StageWithoutGreeting if is_folded else PipelineStage
    shape = torch.empty(SAMPLES, WIDTH, device="meta")  # said, so that no stage needs to ask
    return [kind(Block(stage), stage, sum(map(len, places)), torch.device("cpu"),
                 input_args=shape, output_args=shape) for stage in places[rank]]


def run_schedule(path, dialect, rank, micro_batches):
    stages = make_stages(read_rows(path), rank)
    runtime = schedules._PipelineScheduleRuntime(stages, micro_batches,
                                                 loss_fn=nn.functional.mse_loss)
    runtime._load_csv(str(path), format=dialect)
    x, y = make_batch(micro_batches)
    has_first, has_last = stages[0].is_first, stages[-1].is_last
    losses = []
    runtime.step(*[x] * has_first, target=y if has_last else None,
                 losses=losses if has_last else None, return_outputs=False)

    expected_losses, blocks = train_in_one_process(stages[0].num_stages, micro_batches)
    if has_last:
        found = [loss.item() for loss in losses]
        assert found == expected_losses, f"{path}: losses {found}, not {expected_losses}"
    for stage in stages:
        expected = dict(blocks[stage.stage_index].named_parameters())
        for name, parameter in stage.submod.named_parameters():
            distance = (parameter.grad - expected[name].grad).abs().max().item()
            assert torch.equal(parameter.grad, expected[name].grad), (
                f"{path}: gradient of {name} of stage {stage.stage_index} is {distance:g} off")


def run_rank(rank, ranks, micro_batches, folder, files):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/rendezvous-{ranks}", rank=rank,
                            world_size=ranks, timeout=datetime.timedelta(seconds=60))
    for schedule, chunks, paths in files:
        began = time.monotonic()
        for dialect, path in zip(DIALECTS, paths):
            run_schedule(path, dialect, rank, micro_batches)
        dist.barrier()
        if rank == 0:
            print(f"{schedule:<16} {chunks} per rank, {ranks} ranks: both dialects give the bits of "
                  f"one process ({time.monotonic() - began:.2f} s)", flush=True)
    dist.destroy_process_group()


def run_ranks(ranks, micro_batches, folder, files):
    """Starts the ranks, and ends them all whatever happens."""
    fork = multiprocessing.get_context("fork")  # torch is imported once
    processes = [fork.Process(target=run_rank, args=(rank, ranks, micro_batches, folder, files))
                 for rank in range(ranks)]
    deadline = time.monotonic() + LIMIT
    for process in processes:
        process.start()
    try:
        while any(process.is_alive() for process in processes):
            codes = [process.exitcode for process in processes]
            assert all(code in (None, 0) for code in codes), f"ranks ended with {codes}"
            assert time.monotonic() < deadline, f"{ranks} ranks still run after {LIMIT} s"
            time.sleep(0.05)
    finally:
        for process in processes:
            process.kill()
            process.join()
    codes = [process.exitcode for process in processes]
    assert codes == [0] * ranks, f"ranks ended with {codes}"


# ------------------------------------------------- files alone

def simulate_messages(path):
    """PyTorch's simulator: ends, or raises that the schedule does not progress. It knows neither
    pairs, which run in sequence, nor REDUCE_GRAD."""
    rows = read_rows(path)
    place = {stage: rank for rank, row in enumerate(rows) for stage in stages_of(row)}
    order = {rank: [action for action in parts(row) if action.microbatch_index is not None]
             for rank, row in enumerate(rows)}
    schedules._simulate_comms_compute(order, lambda stage: place[stage], len(place))


def make_torch_schedule(name, chunks, ranks, micro_batches):
    """A schedule object of PyTorch that is never run: stages without tensors will do."""
    def stage(index):
        return types.SimpleNamespace(
            num_stages=ranks * chunks, group_size=ranks, group_rank=0, stage_index=index,
            is_first=index == 0, is_last=False, has_backward=True, submod=nn.Identity())
    loss = nn.functional.mse_loss
    kind = schedules.get_schedule_class(name)
    if name != "GPipe":
        return kind([stage(index) for index in range(chunks)], micro_batches, loss_fn=loss)
    # Not made for the runtime, and its listing has REDUCE_GRAD in it, which no dialect allows.
    order = kind(stage(0), micro_batches, loss_fn=loss)._get_pipeline_order()
    runtime = schedules._PipelineScheduleRuntime([stage(0)], micro_batches, loss_fn=loss)
    runtime.pipeline_order = {
        rank: [action for action in row if action is None or action.is_compute_op]
        for rank, row in order.items()}
    runtime._prepare_schedule_with_comms(runtime.pipeline_order)
    return runtime


def as_text(rows):
    """As Frazil prints a schedule."""
    return "".join("".join([f"d{rank}:"] + [f" {action}" for action in row if action is not None])
                   + "\n" for rank, row in enumerate(rows))


def check_torchs(programs, ranks, micro_batches):
    for name, chunks, ours in TORCHS:
        made = make_torch_schedule(name, chunks, ranks, micro_batches)
        for dialect, rows in zip(DIALECTS, [made.pipeline_order, made.pipeline_order_with_comms]):
            path = programs.folder / f"torch-{name}-{chunks}-{ranks}-{dialect}.csv"
            made._dump_csv(str(path), format=dialect)
            found, expected = programs.read(path), as_text(rows.values())
            assert found == expected, f"{path} is read as\n{found}not as\n{expected}"
            if ours and dialect == "compute_only":
                exported = programs.export(ours, chunks, ranks, micro_batches, dialect)
                found = as_text(read_rows(exported))
                assert found == expected, f"{ours} is\n{found}not as {name}\n{expected}"
        same = f"; the actions are those of our {ours}" if ours else ""
        print(f"{name} {chunks} per rank, {ranks} ranks: both dialects are read action for action"
              + same, flush=True)


def check_ours(programs, ranks, micro_batches):
    files = []
    for schedule, chunks in OURS:
        paths = [programs.export(schedule, chunks, ranks, micro_batches, dialect)
                 for dialect in DIALECTS]
        for path in paths:
            assert programs.read(path) == as_text(read_rows(path)), f"{path} is read otherwise"
        simulate_messages(paths[1])
        files.append((schedule, chunks, paths))
    run_ranks(ranks, micro_batches, programs.folder, files)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--frazil", required=True, help="the front door")
    p.add_argument("--reader", required=True, help="print_pytorch_csv")
    a = p.parse_args()
    assert torch.__version__.startswith("2.11."), f"PyTorch {torch.__version__}, expected 2.11"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(a.frazil, a.reader, folder)
        for ranks, micro_batches in SIZES:
            check_torchs(programs, ranks, micro_batches)
            check_ours(programs, ranks, micro_batches)
    print(f"all of it holds ({time.monotonic() - began:.0f} s after the import of torch)")


if __name__ == "__main__":
    sys.exit(main())
