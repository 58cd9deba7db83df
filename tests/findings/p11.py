#!/usr/bin/env python3
# reproduce pipe-bd ends with 1 and says why where a speed-up has the wrong sign, stands in the wrong order or is off its bar, and every
# row has a verdict that no error contradicts.
"""Runs `frazil reproduce pipe-bd`, reads its rows, and judges signs and orders once more."""

import itertools
import json
import os
import pathlib
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))


def main():
    told = subprocess.run([FRAZIL, "reproduce", "pipe-bd"], capture_output=True, text=True)
    data = subprocess.run([FRAZIL, "reproduce", "pipe-bd", "--json"], capture_output=True, text=True)
    rows = json.loads(data.stdout)["speedups"]
    wrong = []
    bad = set()  # rows that are wrong, by our own judgement
    # Rows of the program's own workload are no reproduction, and LS off its bar tells its open input instead, where a value of that gives the
    # published speed-up.
    judged = [row for row in rows if "bar" in row and (abs(row["error"]) <= row["bar"] or row.get("load_of_a_batch", {}).get("needed_ns") is None)]
    for row in judged:
        simulated, published = row["simulated"], row["published"]
        if simulated is not None and (simulated - 1) * (published - 1) < 0:
            bad.add((row["dataset"], row["method"]))
            if row.get("verdict") != "WRONG SIGN":
                wrong.append(f"{row['method']} on {row['dataset']}, {simulated:.3f} where {published} was published, has the "
                             f"verdict {row.get('verdict')}")
    for a, b in itertools.permutations(judged, 2):
        if (a["task"], a["dataset"]) != (b["task"], b["dataset"]) or None in (a["simulated"], b["simulated"]):
            continue
        if a["published"] > b["published"] and a["simulated"] < b["simulated"]:
            bad |= {(a["dataset"], a["method"]), (b["dataset"], b["method"])}
    bad |= {(row["dataset"], row["method"]) for row in judged if abs(row["error"]) > row["bar"] and "fitted" not in row["verdict"]}
    expected = 1 if bad else 0
    if {told.returncode, data.returncode} != {expected}:
        wrong.append(f"exit codes {told.returncode} and {data.returncode}, expected {expected}")
    for row in rows:
        error = row.get("error")
        is_told_within = str(row.get("verdict")).startswith("within") or row.get("verdict") in (None, "as published")
        if error is None or (is_told_within and abs(error) > row.get("bar", 0)):
            wrong.append(f"{row['method']} on {row['dataset']} with the error {error} has the verdict {row.get('verdict')}")
    lines = told.stdout.splitlines()
    for dataset, method in bad:
        if method == "DP":
            continue
        if not any(line.startswith(f"{method} for ") and dataset in line and "published" in line for line in lines):
            wrong.append(f"no sentence says why {method} on {dataset} is wrong")
    table = lines[:next(i for i, line in enumerate(lines) if line.startswith("Seconds of an epoch"))]
    if bad and any(line.rstrip().endswith(": as published") for line in table):
        wrong.append("`as published` stands below wrong rows")
    if wrong:
        print("; ".join(wrong[:5]))
        return 1
    print(f"{len(rows)} rows have a verdict; {len(bad - {('ImageNet', 'DP')})} of them are wrong and explained; "
          f"exit code {told.returncode}")
    return 0


sys.exit(main())
