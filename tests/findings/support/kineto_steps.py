"""A small trace as PyTorch's profiler writes it, for the scripts beside this one: steps of two layers
with their backward and update; times in us. Memory, shapes and the optimizer's name are options."""

import json


class Trace:
    def __init__(self):
        self.events = []

    def event(self, category, name, start, duration, **more):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1,
                            "ts": start, "dur": duration, "args": more})

    def memory(self, at, address, size):
        self.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
                            "pid": 1, "tid": 1, "ts": at,
                            "args": {"Bytes": size, "Addr": address, "Device Id": -1,
                                     "Device Type": 0}})

    def backward(self, name, start, duration, sequence=-1, **more):
        numbers = {"Sequence number": sequence, "Fwd thread id": 1} if sequence >= 0 else {}
        self.event("cpu_op", "autograd::engine::evaluate_function: " + name, start, duration,
                   **numbers)
        self.event("cpu_op", name, start + 1, duration - 2, **numbers, **more)

    def text(self):
        return json.dumps({"schemaVersion": 1, "traceEvents": self.events})


def shaped(*shapes):
    return {"Input type": ["float"] * len(shapes), "Input Dims": [list(shape) for shape in shapes]}


# What the two layers hold and keep: 64 x 32 floats each; 8 samples.
SAMPLES, WIDTH = 8, 64
PARAMETERS = WIDTH * WIDTH * 4
KEPT = [5000, 70000]  # bytes that the backward of the first and of the second layer frees


def trace_of_steps(steps=3, shapes=False, memory=False, optimizer="AdamW"):
    trace = Trace()
    data = shaped([SAMPLES, WIDTH], [WIDTH, WIDTH]) if shapes else {}
    gradient = shaped([SAMPLES, WIDTH]) if shapes else {}
    weight = shaped([WIDTH, WIDTH]) if shapes else {}
    for step in range(steps):
        at, number = 10_000 * (step + 1), 10 * step
        trace.event("user_annotation", f"ProfilerStep#{step}", at, 5000)
        for layer in range(2):
            trace.event("cpu_op", "aten::linear", at + 100 + 400 * layer, 300,
                        **{"Sequence number": number + layer, "Fwd thread id": 0}, **data)
            if memory:
                trace.memory(at + 150 + 400 * layer, 1000 + layer, KEPT[layer])
                trace.memory(at + 160 + 400 * layer, 2000, 999)
                trace.memory(at + 170 + 400 * layer, 2000, -999)
        for layer in (1, 0):
            start = at + 1000 + 900 * (1 - layer)
            trace.backward("AddmmBackward0", start, 600, number + layer, **gradient)
            if memory:
                trace.memory(start + 300, 1000 + layer, -KEPT[layer])
            trace.backward("torch::autograd::AccumulateGrad", start + 610, 50, **weight)
        trace.event("user_annotation", f"Optimizer.step#{optimizer}.step", at + 3000, 500)
        trace.event("cpu_op", "aten::_foreach_add_", at + 3100, 200)
    return trace.text()


CLUSTER = {"format": "frazil.cluster", "version": 1, "hosts": [{"name": "h", "memory_bytes": 0}],
           "devices": [{"name": f"d{i}", "host": "h", "memory_limit_bytes": 2**30} for i in (0, 1)],
           "default_link": {"latency_ns": 0, "bandwidth_bytes_per_second": 10**10}}
