"""What examples share: what they need of each other, and a run configuration beside model and data with the commands that profile, plan and train."""

import json

COMMANDS = """build/bin/frazil profile --run {0}/run.json --devices 2 --memory-limit 4GiB --rounds 3 --steps 2 --out {0}/profile.json --cluster-out {0}/cluster.json
build/bin/frazil plan --profile {0}/profile.json --cluster {0}/cluster.json --batch {1} --micro-batch {2} --out {0}/plan.json
build/bin/frazil train --run {0}/run.json --profile {0}/profile.json --cluster {0}/cluster.json --plan {0}/plan.json --out {0}/trained"""


def require(parser, path, maker):
    """Ends with a sentence where what another program leaves is not there."""
    if not path.exists():
        parser.error(f"found no {path}, expected what {maker} leaves")


def write_run(folder, **settings):
    """FOLDER/run.json: FOLDER/model.safetensors on FOLDER/train.safetensors with these settings; prints the commands."""
    data = {"kind": "tensors", "train": "train.safetensors", "test": "test.safetensors"}
    run = {"format": "frazil.run", "version": 1, "model": {"kind": "file", "path": "model.safetensors"}, "data": data, **settings}
    (folder / "run.json").write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    print(COMMANDS.format(folder, settings["batch_size"], settings["micro_batch_size"]))
