"""Forecasts, and files of other programs' formats."""

import json

# Step from which it holds, mask.
CHAIN_MASKS = [(0, "1" * 12), (200, "000011111111"), (500, "000000001111"), (800, "0" * 11 + "1"), (950, "1" * 12)]
TABLE = """name,forward_ms,backward_ms,activation_MiB,parameter_MiB,stash_MiB,optimizer_state_MiB,update_ms
embedding,1,1.5,8,100,8,200,0.5
"block, first",2.25,4.5,8,50,24,100,0.25
block2,2.5,5,8,50,24,100,0.25
head,0.125,0.25,0.5,10,1,20,0.125
"""
SPLIT_TABLE = """name,block,forward_us,backward_input_us,backward_weight_us,activation_bytes
a,first,100,120,80,4096
b,first,110,130,90,4096
c,second,90,100,70,64
"""
LEGACY_SCHEDULE = """0F0,0F1,0B0,0W0,0F2,0B1,0W1,0F3,0B2,0W2,0B3,0W3
1F0,1B0,1W0,1F1,1B1,1W1,1F2,1B2,1W2,1F3,1B3,1W3
"""
PIPEDREAM_NODES = [  # name, description, times, sizes
    ("b", "ReLU", "1.000", "2.000", "8.0", "0.000"),
    ("a", "Input", "9.000", "0.000", "8.0", "0.000"),
    ("c", "Linear(3, 4)", "1.500", "2.500", "[8.0; 4.0]", "64.000"),
]
# Id, name, times on a host and on a device, size.
WORK_NODES = [(10, "first", 50, 5, 600), (20, "second", 40, 4, 300), (30, "third", 10, 1, 100)]


def make_trace(blocks, steps, masks, batch):
    """A forecast: masks by the step from which they hold."""
    header = {
        "format": "frazil.freeze_trace", "version": 1, "model_hash": "",
        "blocks": [f"block{number}" for number in range(blocks)],
        "steps": steps, "batch_size": batch, "provenance": {},
    }
    events = [{"step": step, "kind": "mask", "mask": mask} for step, mask in masks]
    return "".join(json.dumps(line) + "\n" for line in [header, *events])


def make_work_graph(memory=1000, hosts=0):
    """Three nodes in a row."""
    nodes = [
        {
            "id": code, "name": name, "supportedOnFpga": 1, "cpuLatency": slow, "fpgaLatency": fast,
            "isBackwardNode": 0, "size": size,
        }
        for code, name, slow, fast, size in WORK_NODES
    ]
    edges = [{"sourceId": 10, "destId": 20, "cost": 0.25}, {"sourceId": 20, "destId": 30, "cost": 2}]
    return {"maxSizePerFPGA": memory, "maxFPGAs": 3, "maxCPUs": hosts, "nodes": nodes, "edges": edges}


def make_graph_of_pipedream():
    nodes = [
        f"{name} -- {what} -- forward_compute_time={forward}, backward_compute_time={backward}, "
        f"activation_size={activation}, parameter_size={parameters}\n"
        for name, what, forward, backward, activation, parameters in PIPEDREAM_NODES
    ]
    return "".join([*nodes, "\ta -- b\n", "\tb -- c\n"])


def write_foreign(inputs):
    inputs.write("freeze.jsonl", make_trace(12, 1000, CHAIN_MASKS, 32))
    inputs.write("never.jsonl", make_trace(12, 1000, CHAIN_MASKS[:1], 32))
    inputs.write("table.csv", TABLE)
    inputs.write("split.csv", SPLIT_TABLE)
    inputs.write("graph.txt", make_graph_of_pipedream())
    inputs.write("schedule.csv", LEGACY_SCHEDULE)
    inputs.write("work.json", make_work_graph())
    inputs.write("work-host.json", make_work_graph(memory=50, hosts=1))
    inputs.write("work-none.json", make_work_graph(memory=50))
