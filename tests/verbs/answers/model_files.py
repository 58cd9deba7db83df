"""Models and clusters that commands read, written here so that nothing hangs on measured times."""


def make_cost(layer, size):
    """Every layer and size takes another time, and no time is round."""
    unit = 100_003 + 9_001 * layer
    return {
        "micro_batch_size": size, "forward_ns": 20_011 + unit * size,
        "forward_frozen_ns": 15_013 + unit * size * 4 // 5,
        "backward_input_ns": 21_001 + unit * size * 11 // 10,
        "backward_weight_ns": 11_003 + unit * size * 9 // 10,
        "backward_weight_alone_ns": 25_007 + unit * size * 3 // 2,
        "stash_bytes": 40_000 * (1 + layer % 3) * size, "stash_frozen_bytes": 16_000 * (1 + layer % 3) * size,
    }


def make_layer(number, last):
    parameters = 600_000 + 50_000 * (number * 7 % 5)
    return {
        "name": f"layer{number}", "block": number, "has_loss": number == last,
        "parameter_bytes": parameters, "optimizer_state_bytes": 2 * parameters,
        "update_ns": 30_011 + 100 * number,
        "costs": [make_cost(number, size) for size in (1, 2, 4, 8)],
    }


def make_model(name, layers, edges, tied=()):
    """Edges are (from, to, kind, bytes of each tensor per sample)."""
    return {
        "format": "frazil.model", "version": 1, "model": name, "provenance": {"source": "made for a test"},
        "input_bytes_per_sample": 3072,
        "blocks": [f"block{number}" for number in range(layers)],
        "layers": [make_layer(number, layers - 1) for number in range(layers)],
        "edges": [
            {"from": a, "to": b, "kind": kind, "tensor_bytes_per_sample": sizes} for a, b, kind, sizes in edges
        ],
        "tied": list(tied),
    }


def make_chain():
    return make_model("chain", 12, [(i, i + 1, "gradient", [8_192 + 1_024 * (i % 3)]) for i in range(11)])


def make_fork():
    """Two ways through, a mask beside one of them, and the first and last layer tied."""
    edges = [
        (0, 1, "gradient", [4096]), (0, 2, "gradient", [4096]), (0, 4, "detached", [64]),
        (1, 3, "gradient", [2048, 512]), (2, 3, "gradient", [2048]),
        (3, 4, "gradient", [8192]), (4, 5, "gradient", [4096]),
    ]
    return make_model("fork", 6, edges, [{"name": "tokens", "bytes": 300_000, "layers": [0, 5]}])


def make_cluster(devices, memory, ppm=(1_000_000,), links=(), per_host=8, bandwidth=2_000_000_000):
    """Devices with so much memory, of times in millionths; links are (from, to, ns, bytes/s)."""
    hosts = (devices + per_host - 1) // per_host
    return {
        "format": "frazil.cluster", "version": 1,
        "hosts": [{"name": f"host{h}", "memory_bytes": 1 << 36} for h in range(hosts)],
        "devices": [
            {
                "name": f"device{d}", "host": f"host{d // per_host}", "memory_limit_bytes": memory,
                "time_ppm": ppm[d % len(ppm)], "action_overhead_ns": 5_003, "step_overhead_ns": 20_011,
            }
            for d in range(devices)
        ],
        "default_link": {"latency_ns": 5_009, "bandwidth_bytes_per_second": bandwidth},
        "links": [dict(zip(("from", "to", "latency_ns", "bandwidth_bytes_per_second"), link)) for link in links],
    }


def slow_links(devices, per_host):
    pairs = [(a, b) for a in range(devices) for b in range(devices)]
    return [(a, b, 50_021, 400_000_000) for a, b in pairs if a // per_host != b // per_host]


MIB = 1 << 20
CLUSTERS = {
    "two": make_cluster(2, 64 * MIB),
    "four": make_cluster(4, 64 * MIB),
    "tight": make_cluster(4, 14 * MIB),
    "snug": make_cluster(4, 22 * MIB),
    "narrow": make_cluster(4, 2 * MIB),
    "uneven": make_cluster(4, 64 * MIB, ppm=(1_000_000, 1_500_000, 1_000_000, 1_250_000)),
    "hosts": make_cluster(8, 64 * MIB, links=slow_links(8, 4), per_host=4),
    "sixteen": make_cluster(16, 1 << 34, per_host=4),
    "free": make_cluster(4, 64 * MIB, bandwidth=0),
}


def write_models(inputs):
    inputs.write("chain.json", make_chain())
    inputs.write("fork.json", make_fork())
    for name, cluster in CLUSTERS.items():
        inputs.write(f"{name}.json", cluster)
