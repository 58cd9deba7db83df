#!/usr/bin/env python3
# A process that is lost at any moment of a step or of a transition leaves no two devices with different numbers of updates.
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted  # noqa: E402
from test_program import run_test  # noqa: E402

KILLS = 600
TESTS = {
    "LostProcess.LeavesTheBitsOfARunThatWasNeverDisturbed": 0.4,
    "LostProcess.TearsNoStepOfTwoStagesTwice": 0.3,
    "LostProcess.ThatSleptHasNoStepDoneTwice": 0.1,
    "LostProcess.LeavesTheOldPlanWhollyInForceWhereATransitionFails": 0.2,
}


def do_all(campaign, folder):
    del folder
    failures = kills = met = 0
    for test, share in TESTS.items():
        count = max(1, round(campaign.count * share))
        said, failed = run_test("exec_processes_tests", test, {**os.environ, "FRAZIL_KILLS": str(count)})
        kills += count
        met += sum(int(number) for number in re.findall(r"^met (\d+)$", said, re.MULTILINE))
        failures += failed
    return Counted(kills, f"processes lost at moments of a step with two replicas, of one with two stages twice, asleep, and of a transition, {met} "
                   "under way: equal numbers of updates on all devices that are left, the old plan or the new one wholly, the same weights", failures,
                   campaign.count)


sys.exit(Campaign("torn_steps", KILLS, __doc__).run(do_all))
