#!/usr/bin/env python3
# Trainings that `kill -9` ends at random times and that go on under other plans lose no step and end with the same weights.
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted  # noqa: E402
from test_program import run_test  # noqa: E402

KILLS = 150
TEST = "KilledProcess.GoesOnToTheSameBitsAndLosesNoStep"


def do_all(campaign, folder):
    said, failed = run_test("exec_verbs_tests", TEST, {**os.environ, "FRAZIL_KILLS": str(campaign.count)})
    kills = re.search(r"^(\d+) kills$", said, re.MULTILINE)
    return Counted(int(kills[1]) if kills else 0,
                   "killed trainings go on under other plans, losing no step, to the same weights and losses", failed)


sys.exit(Campaign("kills", KILLS, __doc__).run(do_all))
