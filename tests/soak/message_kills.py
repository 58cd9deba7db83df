#!/usr/bin/env python3
# Giver, taker and leader of a transition are killed before and after each message of it and of a commit: the same weights, the old plan or the new one.
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted  # noqa: E402
from test_program import run_test  # noqa: E402
from test_script import run_script  # noqa: E402

KILLS = 60  # all moments: three processes, ten messages, before and after


def do_all(campaign, folder):
    del folder
    asked = 0 if campaign.count >= KILLS else campaign.count
    said, failed = run_script("message_kills.py", "--kills", str(asked), "--seed", str(campaign.seed))
    _, torn = run_test("exec_processes_tests", "KillAtAMessage.*", {**os.environ})
    return Counted(0 if failed else campaign.count, "processes killed before and after each message of a transition and of a commit round, "
                   f"and the same in worlds of threads: the same weights, one plan in all that live. {said.splitlines()[-1]}", failed + torn)


sys.exit(Campaign("message_kills", KILLS, __doc__).run(do_all))
