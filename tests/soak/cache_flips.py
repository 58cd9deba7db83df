#!/usr/bin/env python3
# Bits flipped in the disk cache of a living training change no weight: what is damaged is found out and computed anew.
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted, Ended, Failed, tell_kinds  # noqa: E402
from training import FRAZIL, INPUTS, Training, one_line  # noqa: E402

FLIPS = 1858
FLIPS_OF_A_TRAINING = 62
PAUSE = 0.01  # seconds from flip to flip
STEPS = 600
CACHE = {"kind": "on", "memory_bytes": 4096, "disk_bytes": 1 << 20, "folder": "", "admission": "always"}
FREEZE = {"alpha": 0.5, "start_epoch": 2, "interval_epochs": 40}  # of 4 steps each: a prefix is cached, later a deeper one
FLAGS = ["--steps", str(STEPS), "--json"]


def open_cache(process, folder):
    """A descriptor of the file without a name in which the process caches, or None if there is none yet."""
    try:
        for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            if os.readlink(link).startswith(str(folder)):
                return os.open(link, os.O_RDWR)
    except OSError:
        pass
    return None


def flip_one(file, random):
    size = os.fstat(file).st_size
    if size == 0:
        return False
    bit = random.randrange(8 * size)
    byte = os.pread(file, 1, bit // 8)
    os.pwrite(file, bytes([byte[0] ^ 1 << bit % 8]), bit // 8)
    return True


def flip_while_it_lives(process, folder, random, most):
    """Flips bits until `most` are flipped or the training ends; returns how many."""
    file, flipped = None, 0
    while process.poll() is None:
        if file is None:
            file = open_cache(process, folder)
        if file is not None and flipped < most:
            flipped += flip_one(file, random)
        time.sleep(PAUSE)
    if file is not None:
        os.close(file)
    return flipped


class CachedTraining:
    def __init__(self, folder):
        folder.mkdir()
        self.training = Training(folder)
        self.training.write_run("run.json", epochs=200, freeze=FREEZE)
        ended = self.training.train(*FLAGS)
        if ended.returncode:
            raise Failed(f"train exits {ended.returncode}: {one_line(ended.stderr)}")
        self.hash = json.loads(ended.stdout)["state_hash"]
        self.flipped = self.lost = self.found = 0

    def flip_bits(self, random, place):
        (place / "cache").mkdir()
        name = f"cached-{place.name}.json"
        self.training.write_run(name, epochs=200, freeze=FREEZE, cache={**CACHE, "folder": str(place / "cache")})
        inputs = [name if word == "run.json" else word for word in INPUTS]
        process = subprocess.Popen([FRAZIL, "train", *inputs, *FLAGS], cwd=self.training.folder, text=True,
                                   stdout=open(place / "answer.json", "w"), stderr=open(place / "errors.txt", "w"))
        flipped = flip_while_it_lives(process, place / "cache", random, FLIPS_OF_A_TRAINING)
        self.flipped += flipped
        return self.judge(process.returncode, (place / "answer.json").read_text(), one_line((place / "errors.txt").read_text()))

    def judge(self, code, answer, said):
        if code:
            return Ended(f"refused ({code})", f"exit {code}: {said}")
        found = json.loads(answer)
        self.lost += found["cache"]["lost"]
        self.found += found["cache"]["found"]
        if found["state_hash"] != self.hash:
            return Ended("other weights", f"exit 0 with weights {found['state_hash']}, expected {self.hash}")
        return Ended("same weights")


def do_all(campaign, folder):
    cached = CachedTraining(folder / "inputs")
    campaign.count = -(-campaign.count // FLIPS_OF_A_TRAINING)
    tries, kinds, bad = campaign.do_tries(folder, lambda _, random, place: cached.flip_bits(random, place))
    if cached.flipped == 0 or cached.found == 0:
        bad += 1
        print(f"cache_flips: {cached.flipped} bits flipped, {cached.found} samples found: the trainings had no cache on disk")
    return Counted(cached.flipped, f"flips in {tries} trainings: {tell_kinds(kinds)} as without a cache; {cached.lost} damaged "
                   f"samples found out, {cached.found} read", bad)


sys.exit(Campaign("cache_flips", FLIPS, __doc__).run(do_all))
