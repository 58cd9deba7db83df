#!/usr/bin/env python3
"""A reader takes at most 64 MiB + 16 bytes per byte of its file; a what-if above --max-memory is refused before it takes memory."""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.environ.get("FRAZIL", str(TREE / "build/bin/frazil"))
SIZE = 12_000_000
MIB = 1 << 20

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
TRACE = (
    '{"format":"frazil.freeze_trace","version":1,"model_hash":"","blocks":["b"],"steps":9,"open":true,'
    '"batch_size":0,"provenance":{}}\n'
)


def join(unit, count):
    return ",".join(unit % i for i in range(count))


# Name: the question about the file f, and the file.
READERS = {
    "profile of layers": ("plan --profile f --cluster c --batch 8", lambda: MODEL + join(LAYER, SIZE // 145) + '],"edges":[]}'),
    "profile of numbers": ("plan --profile f --cluster c --batch 8", lambda: MODEL + "0," * (SIZE // 2) + "0]}"),
    "profile of keys": (
        "plan --profile f --cluster c --batch 8",
        lambda: '{"format":"frazil.model","version":1,"provenance":{' + join('"%07d":"x"', SIZE // 14) + '},"model":"m"}',
    ),
    "cluster": ("plan --profile m --cluster f --batch 8", lambda: CLUSTER + join(DEVICE, SIZE // 58) + '],"links":[0]}'),
    "plan of actions": (
        "simulate --profile m --cluster c --plan f",
        lambda: PLAN + '{"actions":[[' + '"0F0",' * (SIZE // 6) + '"0F0"]]}}',
    ),
    "freeze trace": (
        "plan --profile m --cluster c --batch 8 --forecast f",
        lambda: TRACE + '{"step":0,"kind":"mask","mask":"1"}\n' * (SIZE // 36),
    ),
    "table of layers": (
        "import csv f --out o",
        lambda: "name,forward_ms,backward_ms,activation_kB,parameter_kB\n" + "".join(f"{i},1,2,1,1\n" for i in range(SIZE // 15)),
    ),
}

WHAT_IFS = (
    "--stages 1024 --micro-batches 64 --schedule 1f1b",
    "--stages 16 --micro-batches 4000 --schedule zb-h1",
    "--stages 8 --micro-batches 9000 --schedule interleaved-1f1b",
    "--stages 512 --micro-batches 100 --schedule v-min",
    "--stages 4 --micro-batches 30000 --schedule dualpipe",
    "--stages 32 --micro-batches 2624 --schedule varuna",
    "--stages 2 --micro-batches 60000 --schedule pipedream-2bw",
    "--stages 16 --micro-batches 4000 --schedule gpipe --out o.csv",
    "--stages 64 --micro-batches 900 --schedule zb-h1 --chrome o.json",
    "--stages 16 --micro-batches 4000 --schedule 1f1b --messages",
    "--stages 64 --micro-batches 300 --schedule search",
    "--stages 16 --micro-batches 2000 --compare",
)
TIMES = "--forward 1ms --backward-input 1ms --backward-weight 1ms --hop 0.3ms"


def ask(folder, question):
    """Returns exit code, peak of resident memory and complaint of one call."""
    done = os.path.join(folder, "usage")
    # A process of its own, for the system keeps only the largest peak of all children.
    code = (
        "import resource,subprocess,sys;"
        "p=subprocess.run(sys.argv[2:],stdout=subprocess.DEVNULL,stderr=subprocess.PIPE);"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "open(sys.argv[1],'wb').write(b'%d %d %s'%(p.returncode,u.ru_maxrss*1024,p.stderr))"
    )
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (9 << 30, 9 << 30))
    subprocess.run([sys.executable, "-c", code, done, FRAZIL, *question.split()], cwd=folder, preexec_fn=limit, check=True)
    returned, peak, complaint = pathlib.Path(done).read_bytes().split(b" ", 2)
    return int(returned), int(peak), complaint.decode(errors="replace").strip()


def check_readers(folder):
    worst = 0
    for name, (question, make) in READERS.items():
        text = make()
        (folder / "f").write_text(text)
        _, peak, _ = ask(folder, question)
        if peak > 64 * MIB + 16 * len(text):
            return f"{name}: {len(text)} bytes took {peak // MIB} MiB", False
        worst = max(worst, peak / len(text))
    return f"{len(READERS)} readers took at most {worst:.1f} bytes per byte", True


def check_what_ifs(folder):
    large = f"simulate --stages 4096 --micro-batches 2000 {TIMES} --schedule zb-h1"
    code, peak, complaint = ask(folder, large)
    if code != 2 or peak > 64 * MIB:
        return f"`{large}`: exit code {code}, {peak // MIB} MiB", False
    ratios = []
    for what_if in WHAT_IFS:
        question = f"simulate {what_if} {TIMES}"
        code, _, complaint = ask(folder, f"{question} --max-memory 1MiB")
        told = re.search(r"take some (\d+) MiB", complaint)
        if code != 2 or not told:
            return f"`{question} --max-memory 1MiB`: exit code {code}: {complaint}", False
        code, peak, complaint = ask(folder, question)
        ratio = int(told[1]) * MIB / peak
        if code != 0 or not 1 <= ratio <= 1.5:
            return f"`{question}`: exit code {code}, {peak // MIB} MiB, estimated {told[1]}: {complaint}", False
        ratios.append(ratio)
    return f"what-ifs were estimated at {min(ratios):.2f} to {max(ratios):.2f} of what they took", True


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "m").write_text(MODEL + LAYER % 0 + '],"edges":[]}')
        (folder / "c").write_text(CLUSTER + DEVICE % 0 + "]}")
        for check in (check_readers, check_what_ifs):
            said, holds = check(folder)
            print(said)
            if not holds:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
