#!/usr/bin/env python3
"""piper_bert.py PIPER.json FOLDER [DEVICES]: Piper's BERT-32 as a model profile and a cluster of DEVICES (64) for `frazil plan`.

Of Piper's options the one of tensor degree 1 without recompute is taken ("vanilla"), for Frazil has no tensor parallelism and
recomputes by itself. Its file has one time per sample for forward and backward together. The rule: a third of it is the forward,
and the rest halves into I and W. memoryUsageA, the bytes that a sample leaves until its backward, is the stash; parameterSize is
the parameters, and memoryUsageB, less parameters and gradients, the optimizer's state. Nodes named "tensor" are inputs that
Piper counts for nothing; left out, the model is a chain. A device has 8 GiB, a link 25 GiB/s, as in the published runs. Piper
counts one set of gradients on a device, which is mode fast; mode exact keeps up to eleven partial sums. Frazil is asked with
  frazil plan --profile FOLDER/bert.json --cluster FOLDER/cluster.json --batch 1920 --reduction fast
and Piper's published time is 0.0202006 s a sample on 64 devices, of a pipeline that never drains; Frazil's step drains."""

import json
import pathlib
import sys

SIZES = (1, 2, 4, 8)


def chain_of(graph):
    """The nodes that are no inputs in their order, and the bytes that leave each of them for the next one."""
    nodes = [node for node in sorted(graph["nodes"], key=lambda node: node["id"]) if node["name"] != "tensor"]
    sizes = {(edge["sourceId"], edge["destId"]): int(edge["communicationCost"]) for edge in graph["edges"]}
    return nodes, [sizes[a["id"], b["id"]] for a, b in zip(nodes, nodes[1:])]


def layer_of(node, place, is_last):
    option = next(option for option in node["TMPCs"]["1"] if option["id"] == "vanilla")
    third = round(option["timePerSample"] * 1e9 / 3)
    parameters = int(option["parameterSize"])
    costs = [{"micro_batch_size": size, "forward_ns": size * third, "forward_frozen_ns": size * third,
              "backward_input_ns": size * third if place > 0 else 0, "backward_weight_ns": size * third * (1 if place > 0 else 2),
              "backward_weight_alone_ns": size * third * (1 if place > 0 else 2),
              "stash_bytes": size * int(option["memoryUsageA"])} for size in SIZES]
    return {"name": f"{node['name']} {node['id']}", "block": place, "has_loss": is_last, "parameter_bytes": parameters,
            "optimizer_state_bytes": max(0, int(option["memoryUsageB"]) - 2 * parameters), "update_ns": 0, "costs": costs}


def main(piper, folder, devices=64):
    nodes, sizes = chain_of(json.loads(pathlib.Path(piper).read_text()))
    layers = [layer_of(node, place, node is nodes[-1]) for place, node in enumerate(nodes)]
    model = {"format": "frazil.model", "version": 1, "model": "bert32", "provenance": {"source": "Piper's BERT-32 on A100"},
             "backward_was_split_by_rule": True, "input_bytes_per_sample": 8192, "blocks": [layer["name"] for layer in layers],
             "layers": layers, "edges": [{"from": at, "to": at + 1, "kind": "gradient", "tensor_bytes_per_sample": [size]}
                                         for at, size in enumerate(sizes)]}
    cluster = {"format": "frazil.cluster", "version": 1, "hosts": [{"name": "host", "memory_bytes": 1 << 44}],
               "devices": [{"name": f"d{d}", "host": "host", "memory_limit_bytes": 8 << 30} for d in range(int(devices))],
               "default_link": {"latency_ns": 0, "bandwidth_bytes_per_second": 25 << 30}}
    place = pathlib.Path(folder)
    place.mkdir(exist_ok=True)
    (place / "bert.json").write_text(json.dumps(model))
    (place / "cluster.json").write_text(json.dumps(cluster))


if __name__ == "__main__":
    main(*sys.argv[1:])
