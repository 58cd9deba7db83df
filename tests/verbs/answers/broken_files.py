"""Files with one fault each, which programs refuse with a sentence."""

import sys

# Source -> new files of its kind: name, a text of the source, and what is put once in its place. At CUT the file ends.
CUT = "\0"
BROKEN = {
    "chain.json": [
        ("model-unknown-key", '"model":', '"colour": "red",\n "model":'),
        ("model-doubled-key", '"version": 1', '"version": 1,\n "version": 1'),
        ("model-other-format", "frazil.model", "frazil.plan"), ("model-other-version", '"version": 1', '"version": 2'),
        ("model-missing-key", '"update_ns": 30311,', ""), ("model-missing-cost", '"forward_ns": 120014,', ""),
        ("model-real-time", '"update_ns": 30211', '"update_ns": 30211.5'),
        ("model-negative", '"stash_bytes": 40000', '"stash_bytes": -40000'),
        ("model-text-number", '"from": 2', '"from": "2"'), ("model-backward-edge", '"from": 2', '"from": 9'),
        ("model-unknown-kind", '"kind": "gradient"', '"kind": "magnetic"'), ("model-cut", '"layer5"', CUT),
        ("model-bad-word", '"has_loss": true', '"has_loss": yes'),
    ],
    "four.json": [
        ("cluster-no-host", '"host": "host0"', '"host": "host9"'), ("cluster-same-name", '"device1"', '"device0"'),
        ("cluster-huge", '"latency_ns": 5009', '"latency_ns": 99999999999999999999'),
        ("cluster-zero-ppm", '"time_ppm": 1000000', '"time_ppm": 0'),
    ],
    "hosts.json": [("cluster-far-link", '"to": 4', '"to": 44')],
    "plan-1f1b.json": [
        ("plan-unknown-schedule", '"1f1b"', '"2f2b"'), ("plan-unknown-axis", '"axis": "data"', '"axis": "time"'),
        ("plan-no-such-device", '"devices": [1]', '"devices": [7]'),
        ("plan-layer-missing", '"layers": [[3, 5]]', '"layers": [[4, 5]]'),
        ("plan-layer-doubled", '"layers": [[3, 5]]', '"layers": [[2, 5]]'),
        ("plan-range-turned", '"layers": [[3, 5]]', '"layers": [[5, 3]]'),
        ("plan-short-mask", '"mask": "111111111111"', '"mask": "1111"'),
        ("plan-bad-mask", '"mask": "111111111111"', '"mask": "11111111111x"'),
        ("plan-few-micro-batches", "[[0, 7]]", "[[0, 6]]"), ("plan-other-model", '"model_hash": "', '"model_hash": "0'),
        ("plan-zero-batch", '"batch_size": 32', '"batch_size": 0'),
        ("plan-comma", '"reduction": "exact",', '"reduction": "exact"'),
    ],
    "plan-lists.json": [
        ("plan-bad-action", '"0F1"', '"0X1"'), ("plan-doubled-action", '"0F1"', '"0F0"'),
    ],
    "plan-fifo.json": [
        ("plan-no-schedule", '"policy": "fifo"', ""), ("plan-unknown-policy", '"fifo"', '"lifo"'),
    ],
    "plan-pipedream.json": [
        ("plan-wrong-versions", '"stash"', '"sync"'),
    ],
    "freeze.jsonl": [
        ("trace-unknown-kind", '"kind": "mask"', '"kind": "masque"'),
        ("trace-extension", '"kind": "mask"', '"kind": "x-mask"'), ("trace-short-mask", '"000011111111"', '"0000"'),
        ("trace-turned", '"step": 500', '"step": 100'), ("trace-other-batch", '"batch_size": 32', '"batch_size": 64'),
        ("trace-other-model", '"model_hash": ""', '"model_hash": "00ff"'),
        ("trace-no-header", "frazil.freeze_trace", "frazil.trace"),
        ("trace-broken-line", '{"step": 500', '{"step" 500'),
    ],
    "table.csv": [
        ("table-unknown-column", "activation_MiB", "activation_furlongs"),
        ("table-missing-cell", "block2,2.5,", "block2,"), ("table-no-number", "0.125,0.25", "fast,0.25"),
        ("table-open-quote", 'first"', "first"), ("table-same-name", "block2", "head"),
    ],
    "graph.txt": [
        ("graph-unknown-node", "\tb -- c", "\tb -- d"), ("graph-cycle", "\ta -- b", "\tc -- b"),
        ("graph-missing-value", ", parameter_size=64.000", ""),
        ("graph-no-number", "forward_compute_time=1.500", "forward_compute_time=x"),
    ],
    "work.json": [
        ("work-cycle", '"destId": 30', '"destId": 10'), ("work-no-node", '"destId": 30', '"destId": 31'),
        ("work-missing-key", '"size": 300', '"weight": 300'),
    ],
    "schedule.csv": [
        ("schedule-unknown-action", "1F1", "1Q1"), ("schedule-doubled-action", "1F1", "1F0"),
        ("schedule-missing-actions", "\n1F0,1B0,1W0,", "\n"),
    ],
    "line.csv": [
        ("line-no-header", "device,lane", "lane,device"),
        ("line-turned", "0,host,0,BARRIER,0,", "0,host,0,BARRIER,99999,"),
        ("line-unknown-lane", "0,compute,0,0F0", "0,dream,0,0F0"),
    ],
    "run-a/phase-0/memory.json": [
        ("memory-unknown-key", '"peak_bytes"', '"pique_bytes"'),
    ],
}


def write_broken(inputs):
    for source, faults in BROKEN.items():
        original = inputs.read(source)
        for name, old, new in faults:
            if old not in original:
                sys.exit(f"answers: `{old}` is not in {source}, from which {name} is made")
            text = original.partition(old)[0] if new == CUT else original.replace(old, new, 1)
            inputs.write(f"broken/{name}{inputs.path(source).suffix}", text)
