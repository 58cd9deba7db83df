"""All that is recorded: the commands of each verb, of `frazil` itself, and what every verb is asked."""

from commands import VERBS, Command, table, told
from exchange_commands import list_export, list_import
from plan_commands import list_plan
from simulate_commands import list_simulate
from trainer_commands import list_trainers

FRONT_DOOR = [
    ("bare", "frazil"), ("help", "frazil --help"), ("short-help", "frazil -h"), ("help-word", "frazil help"),
    ("version", "frazil --version"), ("unknown-verb", "frazil pain"), ("unknown-flag", "frazil --verbose"),
    ("help-unknown", "frazil help pain"), ("help-two", "frazil help plan train"),
    ("nothing-built", "in/alone/frazil plan --help"), ("nothing-built-torch", "in/alone/frazil train --help"),
    ("nothing-built-help", "in/alone/frazil help"),
]
EVERY_VERB = """
bare | own-help --help | version --version | unknown-flag --nonsense 3 | begun-flag --js | doubled-flag --json --json
word nonsense | value-missing --out
"""
REPORT = """
runs-json --folder in/run-b in/run-a --out page.html --json | interrupted in/run-b --out page.html
measured-alone --measured in/measured.csv | no-run in/broken --out page.html | no-folder in/absent --out page.html
with in/run-a
    run --out page.html | run-json --out page.html --json | run-titled --title "A <run> & more" --out page.html
    runs in/run-b --out page.html | page-by-default
    lines-and-folder --predicted in/line.csv --measured in/measured.csv | over-run --out in/run-a/trace.jsonl
    over-phase --out in/run-a/phase-0/measured.csv
with --predicted
    lines in/line.csv --measured in/measured.csv | lines-json in/line.csv --measured in/measured.csv --json
    predicted-alone in/line.csv | several-steps in/measured.csv --measured in/measured.csv
    broken-no-header in/broken/line-no-header.csv --measured in/measured.csv
    broken-turned in/broken/line-turned.csv --measured in/measured.csv
    broken-unknown-lane in/broken/line-unknown-lane.csv --measured in/measured.csv
"""
ABLATE = """
with --simulate $question --forecast in/freeze.jsonl
    plain --epochs 2 | plain-json --epochs 2 --json | cached --samples 4000 --cache-memory 100MB --switch-time 5ms
    cached-json --samples 4000 --cache-memory 10MB --cache-disk 1TB --seed 7 --json | odd-epochs --epochs 7 | samples-only --samples 4000
    searched --schedules 1f1b,search
with --simulate
    tight $tight --batch 32 --forecast in/freeze.jsonl | other-model --profile in/fork.json --cluster in/four.json --batch 32 --forecast in/freeze.jsonl
"""
REPRODUCE = """
pipetransformer pipetransformer | pipetransformer-json pipetransformer --json | pipe-bd pipe-bd
pipe-bd-json pipe-bd --json | sailor sailor $sailor | sailor-json sailor $sailor --json | sailor-no-data sailor
sailor-other-data sailor --data in | pipe-bd-data pipe-bd --data in | two pipe-bd sailor | unknown gpipe
"""


def list_front_door():
    for name, line in FRONT_DOOR:
        yield Command(f"frazil/{name}", (line,))
    yield Command("frazil/lost-output", ("frazil --help",), out="/dev/full")


def list_of_every_verb():
    for verb in VERBS:
        yield from table(verb, EVERY_VERB)
        yield told(verb, "help", f"help {verb}")
        yield told(verb, "lost-output", f"{verb} --help", out="/dev/full")
        yield Command(f"{verb}/called-directly", (f"frazil-{verb} -h",))


def list_report():
    yield from table("report", REPORT)
    yield told("report", "broken-memory", "report in/run-c --out page.html")
    yield told("report", "lost-page", "report in/run-a --out /dev/full")
    yield told("report", "lost-answer", "report in/run-a --out page.html", out="/dev/full")


def list_commands():
    yield from list_front_door()
    yield from list_of_every_verb()
    yield from list_simulate()
    yield from list_plan()
    yield from list_import()
    yield from list_export()
    yield from list_report()
    yield from table("ablate", ABLATE)
    yield from table("reproduce", REPRODUCE)
    yield from list_trainers()
