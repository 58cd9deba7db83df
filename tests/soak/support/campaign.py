"""What all campaigns share: flags, numbered tries drawn from one seed, two at a time, and the row of the table they end with.

A campaign is a program that prints its seed first and its row last, `ROW name | tries | of | checked | bad | seconds`,
where `of` is how many tries there should be at least, and `bad` counts lost runs, wrong bits and crashes. It exits with 0
if that is 0 and no try is missing, else with 1, and with 77 if what it needs is absent. The folder of a bad try is kept.
"""
import argparse
import concurrent.futures
import dataclasses
import pathlib
import random
import shutil
import sys
import tempfile
import time

SUPPORT_OF_FINDINGS = pathlib.Path(__file__).resolve().parents[2] / "findings" / "support"
sys.path.insert(0, str(SUPPORT_OF_FINDINGS))
from training import Absent, Failed  # noqa: E402

TRIES_AT_ONCE = 2
MOST_COMPLAINTS = 20  # that are printed
ABSENT = 77


@dataclasses.dataclass
class Ended:
    """How a try ended: `kind` is counted and shown, `complaint` says what is bad, or is empty."""
    kind: str
    complaint: str = ""


@dataclasses.dataclass
class Counted:
    """A campaign's row but for its name and time. `least` is how many tries there should be, unless that is the campaign's count."""
    tries: int
    checked: str
    bad: int
    least: int = None


class Campaign:
    """The flags of a campaign of `count` tries."""

    def __init__(self, name, count, purpose):
        flags = argparse.ArgumentParser(description=purpose)
        flags.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30), help="of all that is drawn")
        flags.add_argument("--share", type=float, default=100, help="percent of the tries, for a quick one")
        flags.add_argument("--try", dest="only", type=int, help="the number of the one try to do again")
        flags.add_argument("--keep", default="soak-found", help="folder for what bad tries leave")
        given = flags.parse_args()
        self.name, self.seed, self.only = name, given.seed, given.only
        self.count = max(1, round(count * given.share / 100))
        self.asked = self.count if self.only is None else 1
        self.kept = pathlib.Path(given.keep).resolve()

    def random_of(self, number):
        """The draws of one try, the same however many tries there are."""
        return random.Random(f"{self.name} {self.seed} {number}")

    def run(self, do_all):
        """Calls `do_all(campaign, folder)`, which returns what it Counted, prints the row and returns the exit code."""
        print(f"{self.name}: seed {self.seed}", flush=True)
        begin = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix=f"frazil-{self.name}-") as folder:
                counted = do_all(self, pathlib.Path(folder))
        except Absent as absent:
            self.print_row(0, self.asked, f"skipped: {absent}", 0, 0)
            return ABSENT
        except Failed as failed:
            counted = Counted(0, f"failed: {failed}", 1)
        least = self.asked if counted.least is None else counted.least
        if counted.tries < least:
            print(f"{self.name}: {counted.tries} tries, expected at least {least}", flush=True)
        self.print_row(counted.tries, least, counted.checked, counted.bad, time.monotonic() - begin)
        return 1 if counted.bad or counted.tries < least else 0

    def print_row(self, tries, least, checked, bad, seconds):
        print(f"ROW {self.name} | {tries} | {least} | {checked} | {bad} | {seconds:.0f}", flush=True)

    def do_tries(self, folder, do_one):
        """Calls `do_one(number, random, place)` for each try, in a new folder; returns tries, kinds with counts, and bad tries."""
        kinds, bad = {}, 0
        numbers = range(self.count) if self.only is None else [self.only]
        with concurrent.futures.ThreadPoolExecutor(TRIES_AT_ONCE) as pool:
            for ended in pool.map(lambda number: self._do_try(folder, number, do_one), numbers):
                kinds[ended.kind] = kinds.get(ended.kind, 0) + 1
                bad += bool(ended.complaint)
                if ended.complaint and bad <= MOST_COMPLAINTS:
                    print(f"{self.name}: {ended.complaint}", flush=True)
        return len(numbers), kinds, bad

    def _do_try(self, folder, number, do_one):
        place = folder / f"try-{number}"
        place.mkdir()
        try:
            ended = do_one(number, self.random_of(number), place)
            if ended.complaint:
                kept = self.kept / f"{self.name}-{self.seed}-{number}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(place, kept)
                ended.complaint = f"try {number}: {ended.complaint}; see {kept}"
            return ended
        finally:
            shutil.rmtree(place, ignore_errors=True)


def tell_kinds(kinds):
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
