"""The commands of the verbs that run a model: refusals of `profile`, `verify` and `train`, and what measures."""

from commands import table, told

PROFILE = """
no-run --out m.json | missing-run --run in/absent.json --out m.json | broken-run --run in/broken-run.json
with --run in/tiny.json
    devices-none --devices 0 | bad-memory --memory-limit 3 | bad-steps --steps 1 | bad-rounds --rounds 0
    bad-micro-batch --micro-batch 4, | bad-seed --seed 1.5 | bad-device --device gpu | device-cuda --device cuda
    out-is-run --out in/tiny.json | out-is-both --out m.json --cluster-out ./m.json | out-is-special --out /dev/null
    out-is-folder --out in
"""
VERIFY = """
no-cluster --run in/tiny.json --plan in/tiny-1f1b.json
too-little-memory --run in/tiny.json --cluster in/duo-narrow.json --plan in/tiny-1f1b.json
with --run in/tiny.json --cluster in/duo.json
    no-plan | missing-plan --plan in/absent.json | other-model --plan in/plan-lists.json
    plant-no-layer --plan in/tiny-1f1b.json --plant 88:20 | plant-nothing --plan in/tiny-1f1b.json --plant 3:0
    offload --plan in/tiny-offload.json | deadlocked --plan in/tiny-deadlocked.json
with $verified
    bad-plant --plant 3 | bad-blocks --blocks 1 | bad-bar --bar 0 | device-cuda --device cuda
"""
TRAIN = """
no-run --profile in/tiny-model.json --cluster in/duo.json | no-profile --run in/tiny.json --cluster in/duo.json
no-cluster --run in/tiny.json --profile in/tiny-model.json
other-profile --run in/tiny.json --profile in/chain.json --cluster in/duo.json | too-little-memory $tiny_narrow
too-little-for-plan $tiny_narrow --plan in/tiny-1f1b.json
with $tiny
    missing-plan --plan in/absent.json | other-plan --plan in/plan-lists.json
    other-batch --plan in/tiny-small-batch.json | other-reduction --plan in/tiny-fast-pair.json
    masked-plan --plan in/tiny-masked.json | far-device --plan in/tiny-two-by-two.json
    offload --plan in/tiny-offload.json | deadlocked --plan in/tiny-deadlocked.json | bad-steps --steps 0
    bad-seed --seed -1 | bad-device --device gpu | freeze-twice --no-freeze --freeze in/chain.json
    resume-alone --resume --out out | checkpoints-no-out --checkpoint-every 5 | out-is-empty --out ""
    out-is-file --out in/chain.json | device-cuda --device cuda
with $tiny --freeze
    freeze-no-file in/absent.json | freeze-no-json "{policy}" | freeze-unknown '{"policy": {"kind": "melt"}}'
    freeze-unknown-key '{"policy": {"kind": "alpha", "beta": 1}}'
    freeze-bad-number '{"policy": {"kind": "alpha", "alpha": 1}}'
    freeze-both-paces '{"policy": {"kind": "alpha", "interval_steps": 1, "start_epoch": 2}}'
    freeze-short-mask '{"policy": {"kind": "static", "mask": "11"}}'
    freeze-no-trace '{"policy": {"kind": "trace", "path": "in/absent.jsonl"}}'
    freeze-other-trace '{"policy": {"kind": "trace", "path": "in/freeze.jsonl"}}'
    guard-unwatched '{"policy": {"kind": "none"}, "decorators": {"validation_guard": {}}}'
"""
# What is put into the run configuration of tiny.json, and refused.
BAD_RUNS = {
    "unknown-key": {"colour": "red"},
    "unknown-optimizer": {"optimizer": {"kind": "lion"}},
    "other-optimizer": {"optimizer": {"kind": "sgd", "beta1": 0.5}},
    "heads": {"model": {"dim": 16, "heads": 3}},
    "patch": {"model": {"image": 8, "patch": 3}},
    "micro-batch": {"micro_batch_size": 64},
    "image": {"model": {"image": 4, "patch": 2, "dim": 16, "heads": 2}},
    "data": {"data": {"kind": "digits", "path": "absent.csv.gz"}},
    "data-kind": {"data": {"kind": "letters"}},
    "large-batch": {"batch_size": 8000},
    "epochs": {"epochs": 0},
    "cache-and-augmentation": {"augmentation": {"kind": "shift"}, "cache": {"kind": "on"}},
    "reduction": {"reduction": "quick"},
}


def list_measuring():
    """What takes times: nothing runs beside it."""
    alone = {"measures": True, "alone": True}
    profile = "profile --run in/tiny.json --devices 2 --memory-limit 64MiB --rounds 1 --steps 2"
    yield told("profile", "text", f"{profile} --micro-batch 4,8", **alone)
    yield told("profile", "json", f"{profile} --quiet --json", **alone)
    yield told("profile", "files", f"{profile} --quiet --out m.json --cluster-out c.json", **alone)
    for name, flags in [("text", ""), ("json", "--json"), ("planted", "--plant 3:500")]:
        yield told("verify", name, f"verify $verified --blocks 12 --steps 4 --quiet {flags}", **alone)
    durable = "--checkpoint-every 5 --steps 2 --quiet --out out --resume"
    yield told("train", "text", "train $tiny --steps 6", **alone)
    yield told("train", "json", "train $tiny --steps 6 --quiet --json --out out", **alone)
    yield told("train", "resume-nothing", f"train $tiny {durable}", **alone)


def list_trainers():
    yield from table("profile", PROFILE)
    yield from table("verify", VERIFY)
    yield from table("train", TRAIN)
    for name in BAD_RUNS:
        files = f"--run in/bad-{name}.json --profile in/tiny-model.json --cluster in/duo.json"
        yield told("train", f"bad-{name}", f"train {files}")
    yield from list_measuring()
