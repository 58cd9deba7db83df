"""A rank of a stock PyTorch training that torchrun starts again from the newest checkpoint; recovery.py kills one and looks at the log.

torchrun ... elastic_worker.py LOG CHECKPOINT EVERY STEPS
"""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH, IN, WIDTH, BLOCKS, TOKENS, CLASSES = 32, 16, 64, 6, 16, 10  # what Frazil's default model has


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(IN, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, BLOCKS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, inputs):
        return self.head(self.blocks(self.embed(inputs)).mean(1))


def main():
    log, checkpoint, every, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), 0.002)
    begin = 0
    if os.path.exists(checkpoint):
        kept = torch.load(checkpoint)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        begin = kept["step"]
    parallel = DistributedDataParallel(model)
    with open(log, "a", encoding="utf-8") as lines:
        lines.write(f"rank {rank} pid {os.getpid()}\n")
        lines.flush()
        for step in range(begin, steps):
            torch.manual_seed(1000 * step + rank)
            inputs = torch.randn(BATCH // ranks, TOKENS, IN)
            labels = torch.randint(CLASSES, (BATCH // ranks,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(parallel(inputs), labels).backward()
            optimizer.step()
            if rank != 0:
                continue
            lines.write(f"step {step}\n")
            lines.flush()
            if (step + 1) % every == 0:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, checkpoint + ".new")
                os.replace(checkpoint + ".new", checkpoint)
    dist.destroy_process_group()


main()
