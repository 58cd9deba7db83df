#!/usr/bin/env python3
# A training over processes loses one after another, and another begins in each vacant place: it ends with the same weights and leaks nothing.
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted  # noqa: E402
from test_script import run_script  # noqa: E402

CHANGES = 100


def do_all(campaign, folder):
    del folder
    said, failed = run_script("changed_members.py", "--changes", str(campaign.count), "--seed", str(campaign.seed))
    told = next((line for line in said.splitlines() if line.startswith(f"{campaign.count} changes: ")), "none was counted")
    return Counted(0 if failed else campaign.count, "processes killed in one training of 4, and as many begun in their places, steps by 3 and 4 "
                   f"between them: the weights of one process, every sample once. {told}", failed)


sys.exit(Campaign("member_changes", CHANGES, __doc__).run(do_all))
