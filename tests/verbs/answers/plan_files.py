"""Plans that commands read: one of each schedule, and others of replicas, shared stages, recomputing, ..."""

import json

# Name -> where its stages lie, see device_of_stage.
SCHEDULES = dict(
    word.split(":")
    for word in """
    gpipe:linear 1f1b:linear eager-1f1b:linear interleaved-1f1b:looped looped-bfs:looped zb-h1:linear zb-h2:linear
    zb-1p:linear zb-2p:linear zb-v:wave v-half:wave v-min:wave interleaved-zb:looped dualpipe:both-ways
    dualpipev:wave chimera:both-ways bitpipe:wave-both-ways hanayo:wave 2bp:linear pipedream:linear
    pipedream-2bw:linear varuna:linear zb-v-auto:wave
    """.split()
)
CHUNKS = {"linear": 1, "looped": 2, "wave": 2, "both-ways": 1, "wave-both-ways": 2}  # on each device
WEIGHT_VERSIONS = {"pipedream": "stash", "pipedream-2bw": "2bw"}  # of the others: sync


def device_of_stage(placement, devices, direction, stage):
    """The device of a stage: looped goes round, a wave to and fro, the second direction back."""
    along = stage % devices
    if placement.startswith("wave") and stage // devices % 2 == 1:
        along = devices - 1 - along
    return along if direction == 0 else devices - 1 - along


def even_ranges(count, parts):
    """[first, last] of each part; as even as whole numbers allow."""
    return [[p * count // parts, (p + 1) * count // parts - 1] for p in range(parts)]


def make_stages(layers, devices, memory="keep", axis="data"):
    """Equal stages, stage s on devices[s], which is a device or a list of them."""
    on = [place if isinstance(place, list) else [place] for place in devices]
    return [
        {"layers": [part], "devices": place, "axis": axis, "memory": memory}
        for part, place in zip(even_ranges(layers, len(devices)), on)
    ]


def make_plan(model, pipelines, schedule, batch, micro_batch, **others):
    """`model` is (hash, layers); each pipeline gets an equal share of the micro-batches."""
    code, layers = model
    shares = even_ranges(batch // micro_batch, len(pipelines))
    plan = {
        "format": "frazil.plan", "version": 1, "model_hash": code,
        "batch_size": batch, "micro_batch_size": micro_batch, "mask": "1" * layers, "cache_frozen_prefix": False,
        "pipelines": [{"stages": stages, "micro_batches": [share]} for stages, share in zip(pipelines, shares)],
        "schedule": schedule if isinstance(schedule, dict) else {"name": schedule, "chunks": 1},
        "reduction": "exact", "weight_versions": "sync", "provenance": {},
    }
    return {**plan, **others}


def make_scheduled_plan(name, model, devices, batch, micro_batch, **others):
    """Equal stages placed as the schedule wants them."""
    placement = SCHEDULES[name]
    chunks = CHUNKS[placement]
    pipelines = []
    for way in range(2 if placement.endswith("both-ways") else 1):
        places = [device_of_stage(placement, devices, way, stage) for stage in range(devices * chunks)]
        pipelines.append(make_stages(model[1], places))
    if name == "varuna":
        for stage in pipelines[0][:-1]:
            stage["memory"] = "recompute"
    versions = WEIGHT_VERSIONS.get(name, "sync")
    schedule = {"name": name, "chunks": chunks}
    return make_plan(model, pipelines, schedule, batch, micro_batch, weight_versions=versions, **others)


def make_other_plans(model, batch, micro_batch, **others):
    """Name -> plan: replicas, shared stages, recomputing, lists given outright, ..."""

    def stages(*devices, **how):
        return make_stages(model[1], devices, **how)

    def plan(*pipelines, schedule="1f1b", **more):
        return make_plan(model, pipelines, schedule, batch, micro_batch, **{**others, **more})

    first = "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3".split()
    second = "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3".split()
    turned = "1F3 1B3 1F2 1B2 1F1 1B1 1F0 1B0".split()
    return {
        "alone": plan(stages(0)),
        "replicas": plan(stages(0), stages(1)),
        "two-by-two": plan(stages(0, 1), stages(2, 3)),
        "unequal": plan(stages(0, 1, 2), stages(3)),
        "shared": plan(stages([0, 1], 2)),
        "samples": plan(stages([0, 1], 2, axis="samples"), schedule="gpipe", reduction="fast"),
        "samples-exact": plan(stages([0, 1], 2, axis="samples")),
        "recompute": plan(stages(0, 1, memory="recompute")),
        "offload": plan(stages(0, 1, memory="offload")),
        "fast": plan(stages(0, 1), stages(2, 3), reduction="fast"),
        "fast-pair": plan(stages(0, 1), reduction="fast"),
        "lists": plan(stages(0, 1), schedule={"actions": [first, second]}),
        "deadlocked": plan(stages(0, 1), schedule={"actions": [first, turned]}),
        "fifo": plan(stages(0, 1), schedule={"policy": "fifo"}),
        "in-flight": plan(stages(0, 1), schedule={"name": "1f1b", "in_flight": 3, "chunks": 1}),
    }


def find_model(inputs, name, cluster, flags, layers):
    """(hash, layers) of a model; the hash from a plan for it."""
    inputs.make(f"plan --profile {name} --cluster {cluster} {flags} --out found-{name}")
    return json.loads(inputs.read(f"found-{name}"))["model_hash"], layers


def write_plans(inputs):
    flags = "--batch 32 --micro-batch 4"
    chain = find_model(inputs, "chain.json", "four.json", flags, 12)
    fork = find_model(inputs, "fork.json", "four.json", flags, 6)
    for name in SCHEDULES:
        inputs.write(f"plan-{name}.json", make_scheduled_plan(name, chain, 4, 32, 4))
    for name, plan in make_other_plans(chain, 16, 4).items():
        inputs.write(f"plan-{name}.json", plan)
    inputs.write("plan-fork.json", make_plan(fork, [make_stages(6, [0, 1, 2])], "1f1b", 32, 4))
