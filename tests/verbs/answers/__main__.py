"""Shows that a change of the code left the answers of the programs as they were.

For whoever moves, renames or splits code and means to change no behaviour. Build the tree before and after, record
both, and compare:

    python3 tests/verbs/answers record --programs OLD/build/bin --source OLD --shared SHARED --out old
    python3 tests/verbs/answers record --programs build/bin --source . --shared SHARED --out new
    python3 tests/verbs/answers compare old new

SHARED is the folder with data/ in it (graphs of PipeDream, plans of Sailor, a trace of PyTorch's). `record` runs more
than 900 commands of all verbs, two at once, each in a folder of its own, and writes for each what was asked, exit
code, standard output and error, and the files that it wrote. `train` does the same, without --shared, with some 65
short training runs, which are compared by the hash of their state, their losses, plans and masks, and all else that
is not measured.

`compare` is byte by byte, after the rules of filter_rules.py have put `#` in the place of what was measured and of
machine and date, and names in the place of folders. It prints a difference for each command whose answer is another,
and how many commands succeeded. It ends with 0 only where all answers are equal and --least of the commands succeeded
(30 unless told). A change that is meant is told in a file, as in rewordings.json:

    python3 tests/verbs/answers compare old new --rewordings meant.json
    [{"old": "found no --(\\S+), expected it to be given", "new": "missing --\\1"}]

Each "old" is a regular expression (Python's, ^ and $ at every line) and is replaced in the old answers; how often is
printed, and one that replaces nothing is a failure. Where the commands themselves get other flags, change them here, and reword the old ones: an answer is known
by its name.

What trains needs a profile of its model: `frazil profile` makes it, and its times are replaced by fixed ones. With
--inputs FOLDER it is taken from there, and put there where it is missing: then two recordings have the same one even
where the programs profile differently. --only REGEX runs or compares the commands whose names match.

Each recording takes 1.5 to 2 minutes on two cores, also beside a compiler. A busy machine gives the same answers but
of `verify`, which then measures nothing; `compare` counts such answers apart and says so. Both have to be recorded on one
machine: weights are those of its processor, and the refusal of --device cuda goes by its driver. Needs Python 3.9.
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True

from comparing import compare  # noqa: E402
from every_command import list_commands  # noqa: E402
from recording import record  # noqa: E402
from training_runs import list_runs  # noqa: E402


def read_command_line():
    parser = argparse.ArgumentParser(
        prog="answers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    recorder = verbs.add_parser("record", help="answers of all verbs")
    trainer = verbs.add_parser("train", help="answers of training runs")
    comparer = verbs.add_parser("compare", help="lay two recordings side by side")
    for one in (recorder, trainer):
        one.add_argument("--programs", type=pathlib.Path, required=True, help="build/bin")
        one.add_argument("--source", type=pathlib.Path, required=True, help="their checkout")
        one.add_argument("--out", type=pathlib.Path, required=True, help="the recording")
        one.add_argument("--inputs", type=pathlib.Path, help="profiles, made where missing")
    recorder.add_argument("--shared", type=pathlib.Path, required=True, help="public data")
    trainer.set_defaults(shared=None)
    comparer.add_argument("old", type=pathlib.Path)
    comparer.add_argument("new", type=pathlib.Path)
    comparer.add_argument("--least", type=int, default=30, help="how many commands have to succeed, default 30")
    comparer.add_argument("--rewordings", type=pathlib.Path, help="changes that are meant, JSON")
    for one in (recorder, trainer, comparer):
        one.add_argument("--only", default="", help="names of commands, a regular expression")
    return parser.parse_args()


def main():
    options = read_command_line()
    if options.verb == "compare":
        return compare(options)
    record(options, [run.command() for run in list_runs()] if options.verb == "train" else list(list_commands()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
