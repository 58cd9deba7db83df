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


def fuzz(campaign, folder, fuzzer):
    """Number of inputs, and a complaint or nothing."""
    name = fuzzer.name.removeprefix("fuzz_")
    corpus = folder / name
    corpus.mkdir()
    campaign.kept.mkdir(parents=True, exist_ok=True)
    ended = subprocess.run(
        [str(fuzzer), f"-seed={campaign.seed % (1 << 31) + 1}", f"-max_total_time={campaign.count}", "-rss_limit_mb=512",
         "-malloc_limit_mb=64", "-timeout=5", f"-dict={TREE}/tests/fuzz/{name}.dict", f"-artifact_prefix={campaign.kept}/{name}-",
         "-print_final_stats=1", str(corpus), str(TREE / "tests/fuzz/seeds" / name)],
        env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=64"}, text=True, errors="replace", capture_output=True)
    inputs = re.search(r"number_of_executed_units: (\d+)", ended.stderr)
    complaint = f"{fuzzer.name} ends with {ended.returncode}: {ended.stderr[-600:]}" if ended.returncode else ""
    return int(inputs[1]) if inputs else 0, complaint


def do_all(campaign, folder):
    fuzzers = sorted(FUZZERS.glob("fuzz_*"))
    if not fuzzers:
        raise Absent(f"no fuzzers in {FUZZERS}, which ./test.sh builds")
    with concurrent.futures.ThreadPoolExecutor(TRIES_AT_ONCE) as pool:
        ended = list(pool.map(lambda fuzzer: fuzz(campaign, folder, fuzzer), fuzzers))
    complaints = [complaint for _, complaint in ended if complaint]
    for complaint in complaints:
        print(f"fuzz: {complaint}")
    return Counted(sum(inputs for inputs, _ in ended), f"{len(fuzzers)} sanitized readers, {campaign.count} s each: no crash, no "
                   "input of 5 s or 512 MiB", len(complaints))


sys.exit(Campaign("fuzz", SECONDS, __doc__).run(do_all))
