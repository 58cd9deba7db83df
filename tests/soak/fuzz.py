#!/usr/bin/env python3
# The sanitized fuzzers of all readers find nothing. FRAZIL_FUZZERS names their folder, build/fuzz/bin unless told.
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import TRIES_AT_ONCE, Absent, Campaign, Counted  # noqa: E402

TREE = pathlib.Path(__file__).resolve().parents[2]
FUZZERS = pathlib.Path(os.environ.get("FRAZIL_FUZZERS", str(TREE / "build/fuzz/bin")))
SECONDS = 60  # of each fuzzer
NEED_TORCH = {"run_config", "checkpoint"}  # built with -DFRAZIL_FUZZ_TORCH=ON alone


def list_missing(names):
    """Readers that have a fuzzer in the sources and none among the programs."""
    known = {path.name.removesuffix("_fuzz.cpp") for path in (TREE / "tests/fuzz").glob("*_fuzz.cpp")}
    return sorted(known - NEED_TORCH - set(names))


def name_of(fuzzer):
    return fuzzer.name.removeprefix("fuzz_")


def fuzz(campaign, folder, fuzzer):
    """Number of inputs, and a complaint or nothing."""
    name = name_of(fuzzer)
    corpus = folder / name
    corpus.mkdir()
    campaign.kept.mkdir(parents=True, exist_ok=True)
    ended = subprocess.run(
        [str(fuzzer), f"-seed={campaign.seed % (1 << 31) + 1}", f"-max_total_time={campaign.count}", "-rss_limit_mb=512",
         "-malloc_limit_mb=64", "-timeout=5", f"-dict={TREE}/tests/fuzz/{name}.dict", f"-artifact_prefix={campaign.kept}/{name}-",
         "-print_final_stats=1", str(corpus), str(TREE / "tests/fuzz/seeds" / name)],
        env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=64"}, text=True, errors="replace", capture_output=True)
    inputs = re.search(r"number_of_executed_units: (\d+)", ended.stderr)
    if ended.returncode or not inputs or int(inputs[1]) == 0:
        return 0, f"{fuzzer.name} ends with {ended.returncode}: {ended.stderr[-600:]}"
    return int(inputs[1]), ""


def do_all(campaign, folder):
    fuzzers = sorted(FUZZERS.glob("fuzz_*"))
    if not fuzzers:
        raise Absent(f"no fuzzers in {FUZZERS}, which ./test.sh --sanitizers builds")
    with concurrent.futures.ThreadPoolExecutor(TRIES_AT_ONCE) as pool:
        ended = list(pool.map(lambda fuzzer: fuzz(campaign, folder, fuzzer), fuzzers))
    complaints = [complaint for _, complaint in ended if complaint]
    missing = list_missing(map(name_of, fuzzers))
    for line in complaints + [f"no fuzzer of {name} in {FUZZERS}" for name in missing]:
        print(f"fuzz: {line}")
    inputs = sum(inputs for inputs, _ in ended)
    return Counted(len(fuzzers), f"sanitized readers, {campaign.count} s each, take {inputs} inputs: no crash, no input of 5 s "
                   "or 512 MiB", len(complaints), len(fuzzers) + len(missing))


sys.exit(Campaign("fuzz", SECONDS, __doc__).run(do_all))
