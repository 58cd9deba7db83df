"""What is recorded: commands of the programs, most of them written as rows of a table."""

import dataclasses
import pathlib
import string

from broken_files import BROKEN

VERBS = "profile plan simulate train verify import export report check ablate reproduce".split()

# Words of the tables. In the folder of a command `in` holds what was made here, `shared` is the folder of public data.
WORDS = {
    "even": "--stages 4 --micro-batches 8 --forward 1ms --backward-input 1ms --backward-weight 1ms --hop 0.1ms",
    "uneven": "--stages 4 --micro-batches 8 --forward 1ms,2ms,1.5ms,1ms --backward-input 1ms,2.2ms,1.5ms,1ms "
    "--backward-weight 0.9ms,1.6ms,1.5ms,0.8ms --hop 0.25ms",
    "odd": "--stages 3 --micro-batches 5 --forward 1.1ms --backward-input 1.3ms --backward-weight 0.7ms --hop 0.05ms",
    "ms": "--forward 1ms --backward-input 1ms --backward-weight 1ms",
    "small": "--stages 2 --micro-batches 3 --schedule 1f1b",
    "chain": "--profile in/chain.json --cluster in/four.json",
    "question": "--profile in/chain.json --cluster in/four.json --batch 32",
    "planned": "--plan in/plan-1f1b.json --profile in/chain.json --cluster in/four.json",
    "pair": "--profile in/chain.json --cluster in/two.json",
    "tight": "--profile in/chain.json --cluster in/tight.json",
    "narrow": "--profile in/chain.json --cluster in/narrow.json",
    "uneven_devices": "--profile in/chain.json --cluster in/uneven.json",
    "fork": "--profile in/fork.json --cluster in/four.json",
    "pipedream": "shared/data/pipedream",
    "sailor": "--data shared/data/sailor",
    "plans_of_sailor": "shared/data/sailor/validation/clariden/OPT-350",
    "graphs": "shared/data/dnn-partitioning/throughput-inputs",
    "trace": "shared/data/kineto/ns_resolution_trace__rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "verified": "--run in/tiny.json --cluster in/duo.json --plan in/tiny-1f1b.json",
    "tiny": "--run in/tiny.json --profile in/tiny-model.json --cluster in/duo.json",
    "tiny_narrow": "--run in/tiny.json --profile in/tiny-model.json --cluster in/duo-narrow.json",
}


@dataclasses.dataclass(frozen=True)
class Command:
    """One answer of a recording: lines that run one after the other in a folder of its own."""

    name: str  # verb/what
    lines: tuple
    out: str = ""  # where standard output goes instead
    measures: bool = False  # times, of which a filter knows
    alone: bool = False  # nothing else runs meanwhile


def told(verb, name, *lines, **how):
    """A command of lines `frazil ...`; words after `$` stand for those of WORDS."""
    filled = tuple(f"frazil {string.Template(line).substitute(WORDS)}" for line in lines)
    return Command(f"{verb}/{name}", filled, **how)


def table(verb, rows):
    """A command of the verb for each row `name arguments`, which ` | ` or a new line ends.

    In front of the arguments of indented rows stand those of the line `with ...` above.
    """
    common = []
    for line in rows.strip().splitlines():
        if line.startswith("with "):
            common = [line[len("with ") :]]
            continue
        for row in line.strip().split(" | "):
            name, *more = row.split(" ", 1)
            yield told(verb, name, " ".join([verb, *common, *more]))


def on_broken(verb, sources, line):
    """A command for each broken file made of one of these sources; BROKEN in the line stands for it."""
    for source in sources.split():
        for name, _, _ in BROKEN[source]:
            broken = f"in/broken/{name}{pathlib.PurePath(source).suffix}"
            yield told(verb, f"broken-{name}", line.replace("BROKEN", broken))
