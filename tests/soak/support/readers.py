"""Files of each kind that Frazil reads, and commands that read them: what mutants are made of."""
import dataclasses
import pathlib
import shutil

from campaign import Failed
from training import Training, one_line

SEEDS = pathlib.Path(__file__).resolve().parents[2] / "fuzz/seeds"
TABLE = """name,forward_ms,backward_ms,activation_kB,parameter_kB
embed,1,2,64,16
attention,4,8,64,48
mlp,6,12,64,96
head,1,2,4,8
"""
FILES = "--profile model.json --cluster cluster.json"
WHAT_IF = "--stages 4 --micro-batches 8 --forward 1ms --backward-input 1ms --backward-weight 1ms"


@dataclasses.dataclass
class Reader:
    """In a command FILE stands for the mutant of one of the paths (every other time the first), OUT for a new file; a mutant of
    a file in a folder has FOLDER, the whole copy."""
    kind: str
    paths: list
    commands: list
    folder: pathlib.Path = None
    weight: float = 1


def make_inputs(folder):
    """Makes files in the folder with the programs themselves; returns the readers."""
    training = Training(folder)
    (folder / "layers.csv").write_text(TABLE)
    for command in (
            f"plan {FILES} --batch 16 --micro-batch 4 --max-replicas 1 --schedules zb-h1 --no-recompute --out plan.json",
            "import csv layers.csv --micro-batch-size 4 --out table.json",
            "cluster --devices 4 --preset h100-sxm --per-host 2 --between infiniband-ndr --out gpus.json",
            f"simulate --plan plan.json {FILES} --out step.csv --chrome step.json",
            f"export --to pytorch-csv --plan plan.json {FILES} --out schedule.csv",
            f"export --to pytorch-csv --comms --plan plan.json {FILES} --out schedule-comms.csv",
            f"train --run run.json {FILES} --steps 60 --checkpoint-every 20 --out run --quiet"):
        ended = training.run(*command.split())
        if ended.returncode:
            raise Failed(f"frazil {command} exits {ended.returncode}: {one_line(ended.stderr)}")
    shutil.copytree(folder / "run", folder / "interrupted")
    (folder / "interrupted/trace.jsonl").unlink()
    return list_readers(folder)


def list_seeds(kind):
    return sorted(path for path in (SEEDS / kind).iterdir() if path.is_file())


def list_readers(folder):
    run, cut = folder / "run", folder / "interrupted"
    return [
        Reader("plan", [folder / "plan.json", *list_seeds("plan")],
               [f"simulate --plan FILE {FILES}", f"simulate --plan FILE {FILES} --explain --json",
                f"export --to svg --plan FILE {FILES} --out OUT", f"plan {FILES} --batch 16 --held FILE --mask 1111 --steps 10"]),
        Reader("profile", [folder / "model.json", folder / "table.json", *list_seeds("model_profile")],
               ["plan --profile FILE --cluster cluster.json --batch 16 --top 3", "simulate --plan plan.json --profile FILE --cluster "
                "cluster.json", "plan --profile FILE --cluster cluster.json --batch 8 --planner dynmo"]),
        Reader("cluster", [folder / "cluster.json", folder / "gpus.json", *list_seeds("cluster")],
               ["plan --profile model.json --cluster FILE --batch 16 --top 3", "simulate --plan plan.json --profile model.json "
                "--cluster FILE --share-links", "plan --profile table.json --cluster FILE --batch 16 --planner pipedream"]),
        Reader("freeze trace", [run / "trace.jsonl", *list_seeds("freeze_trace")], [f"plan {FILES} --batch 16 --forecast FILE"]),
        Reader("Kineto trace", list_seeds("kineto"), ["import kineto FILE --micro-batch-size 2 --out OUT --json"], weight=2),
        Reader("Chrome trace", [folder / "step.json", run / "phase-0/trace.json"], ["import kineto FILE --out OUT"]),
        Reader("PyTorch schedule", [folder / "schedule.csv", folder / "schedule-comms.csv", *list_seeds("pytorch_csv")],
               [f"import pytorch-csv FILE --plan plan.json {FILES} --out OUT"], weight=2),
        Reader("layer table", [folder / "layers.csv", *list_seeds("layer_csv")], ["import csv FILE --out OUT"]),
        Reader("work graph", list_seeds("work_graph"), ["plan --graph FILE --states 20000"]),
        Reader("PipeDream graph", list_seeds("pipedream_graph"), ["import pipedream FILE --out OUT"]),
        Reader("time line", [folder / "step.csv", *list_seeds("timeline_csv")],
               ["report --predicted FILE --measured step.csv", "report --predicted step.csv --measured FILE --json"]),
        Reader("folder of a run", [run / "trace.jsonl", *sorted(run.glob("phase-*/*"))],
               ["report FOLDER --out OUT"], folder=run),
        Reader("event log", [cut / "events.jsonl"], ["report FOLDER --out OUT"], folder=cut),
        Reader("step journal", [run / "checkpoints/steps.journal"], ["check FOLDER"], folder=run),
        Reader("checkpoint", sorted(run.glob("checkpoints/step-*")), ["check FOLDER --json"], folder=run),
        Reader("run configuration", [folder / "run.json", *list_seeds("run_config")],
               [f"train --run FILE {FILES} --steps 1 --quiet"], weight=0.15),
        Reader("command line", [], [f"simulate {WHAT_IF} --schedule 1f1b --hop 0.1ms --explain", f"simulate {WHAT_IF} --schedule zb-v "
                                    "--change straggler:2+30% --jitter 5 --draws 20", "cluster --devices 64 --preset h100-sxm "
                                    "--per-host 8 --between infiniband-ndr --within-latency 2us --out OUT",
                                    f"simulate {WHAT_IF} --compare --fits 4 --activation 1MiB --memory-limit 8MiB",
                                    f"plan {FILES} --batch 16 --micro-batch 2,4 --schedules 1f1b,zb-h1 --mask 0111 --top 3 --gap 5",
                                    f"export --to chrome {WHAT_IF} --schedule gpipe --out OUT"]),
    ]
