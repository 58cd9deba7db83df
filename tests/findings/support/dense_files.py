"""Files as dense as one can make them: whatever form a reader expects, and files of its own form that are all one thing."""

import functools

SIZE = 6_000_000


def times(unit, count=None, between=","):
    """A unit repeated to SIZE bytes, numbered where it has a place for a number."""
    width = len((unit % 1234567 if "%" in unit else unit) + between)
    return between.join(unit % i if "%" in unit else unit for i in range(count or SIZE // width))


# Files of no form: each is given to every reader.
SHAPES = {
    "one long word": lambda: "a" * SIZE,
    "one long number": lambda: "1" * SIZE,
    "commas alone": lambda: "," * SIZE,
    "newlines alone": lambda: "\n" * SIZE,
    "lines of one letter": lambda: "a\n" * (SIZE // 2),
    "quotes alone": lambda: '"' * SIZE,
    "zero bytes": lambda: "\0" * SIZE,
    "open brackets": lambda: "[" * SIZE,
    "nested objects": lambda: '{"a":' * (SIZE // 5),
    "empty objects": lambda: "[" + times("{}") + "]",
    "empty texts": lambda: "[" + times('""') + "]",
    "numbers": lambda: "[" + times("0") + "]",
    "keys": lambda: "{" + times('"%07d":0') + "}",
}


@functools.cache
def shape(name):
    return SHAPES[name]()


# Those for a program that starts slowly.
FEW = ("newlines alone", "quotes alone", "nested objects", "numbers", "keys")

MODEL = '{"format":"frazil.model","version":1,"model":"m","blocks":["b"],"layers":['
LAYER = (
    '{"name":"a%d","block":0,"has_loss":true,"parameter_bytes":0,'
    '"costs":[{"micro_batch_size":1,"forward_ns":1,"backward_ns":1,"stash_bytes":0}]}'
)
CLUSTER = '{"format":"frazil.cluster","version":1,"hosts":[{"name":"h","memory_bytes":1}],"devices":['
DEVICE = '{"name":"%d","host":"h","memory_limit_bytes":1000000}'
PLAN = (
    '{"format":"frazil.plan","version":1,"model_hash":"","batch_size":1,"micro_batch_size":1,"mask":"1",'
    '"pipelines":[{"stages":[{"layers":[[0,0]],"devices":[0]}],"micro_batches":[[0,0]]}],"schedule":'
)
LOG = (
    '{"format":"frazil.freeze_trace","version":1,"model_hash":"","blocks":["b"],"steps":9,"open":true,'
    '"batch_size":0,"provenance":{}}\n'
)
OPERATION = '{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":%d,"dur":1,"args":{"Sequence number":%d}}'
TIMELINE = "# frazil.timeline 1 devices=1\ndevice,lane,step,action,start_ns,end_ns\n"
NODE = "node%d -- L -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=1.0, parameter_size=1.0\n"


def trace_of(*events):
    return '{"traceEvents":[' + ",".join(events) + "]}"


def operations():
    return trace_of(*(OPERATION % (3 * i, i) for i in range(SIZE // len(OPERATION))))


def marks_in_many_steps():
    """One step with many layers, and many steps without layers."""
    mark = '{"ph":"X","cat":"user_annotation","name":"%s%d","pid":1,"tid":1,"ts":%d,"dur":%d}'
    layers = [mark % ("layer:", i, i, 1) for i in range(16_000)]
    first = [mark % ("ProfilerStep#", 0, -9, 1), mark % ("ProfilerStep#", 1, 0, 20_000)]
    return trace_of(*first, *layers, *(mark % ("ProfilerStep#", i, 20_000 + 2 * i, 1) for i in range(2, SIZE // 100)))


def threads():
    return trace_of(*('{"ph":"X","cat":"cpu_op","name":"a","tid":%d,"ts":1,"dur":1}' % i for i in range(SIZE // 66)))


def names():
    return trace_of(*('{"ph":"X","cat":"cpu_op","name":"%d","tid":1,"ts":%d,"dur":1}' % (i, 2 * i) for i in range(SIZE // 72)))


def memory():
    return trace_of(OPERATION % (0, 0), *('{"ph":"i","name":"[memory]","ts":%d,"args":{"Bytes":1,"Addr":%d}}' % (i, i)
                                          for i in range(SIZE // 76)))


def tensors():
    """A safetensors file whose header is as long as the rest of a checkpoint."""
    entry = '"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = ('{"__metadata__":{},' + times(entry) + "}").encode()
    return (len(header).to_bytes(8, "little") + header).decode("latin1")
