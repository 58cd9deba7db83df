#!/usr/bin/env python3
# A training of which any one call of the file system fails, or is the last of its process, ends with the same weights.
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted  # noqa: E402
from test_program import run_test  # noqa: E402

FULL = 100  # percent: every call has every fault; with less, the test draws its faults
FAULTS_OF_A_CALL = 3
UNSTRUCK = 20  # faults at most whose call does not come again, since threads make calls in another order
TEST = "TrainingFaults.EveryCallMayFailOrBeTheLast"


def do_all(campaign, folder):
    environment = dict(os.environ)
    if campaign.count == FULL:
        environment["FRAZIL_ALL_FAULTS"] = "1"
    said, failed = run_test("exec_properties_tests", TEST, environment)
    counted = re.search(r"seed \d+: (\d+) calls, (\d+) faults", said)
    calls, faults = (int(counted[1]), int(counted[2])) if counted else (0, 0)
    least = max(1, FAULTS_OF_A_CALL * calls - UNSTRUCK) if campaign.count == FULL else 1
    return Counted(faults, f"no space, an input or output error, the end of the process at each of {calls} calls of the file "
                   "system: same weights, no step lost, nothing left behind", failed, least)


sys.exit(Campaign("faults", FULL, __doc__).run(do_all))
