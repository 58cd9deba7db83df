"""The commands of `frazil plan`."""

from commands import on_broken, table, told
from plan_files import SCHEDULES

PLANNERS = "pipe-bd pipe-bd-memory torchgpipe pipetransformer pipedream dynmo dynmo-diffusion uniform".split()

PLAN = """
schedules --schedules help | planners --planner help
fork-mask --profile in/fork.json --cluster in/hosts.json --batch 16 --mask 001111 --json
no-profile --cluster in/four.json --batch 32
missing-profile --profile in/absent.json --cluster in/four.json --batch 32
profile-is-cluster --profile in/four.json --cluster in/four.json --batch 32
broken-profile --profile in/broken/model-unknown-key.json --cluster in/four.json --batch 32
with $question
    best | best-json --json | best-out --top 3 --out plan.json | explain --explain | explain-json --explain --json
    top --top 40 | micro-batch --micro-batch 4 | micro-batches --micro-batch 1,2,8 --json
    micro-batch-unmeasured --micro-batch 16 --top 3 | mask --mask 000011111111 --explain
    mask-holes --mask 010110111111 | mask-most --mask 000000000001 | mask-none --mask 000000000000
    cache --mask 000000001111 --cache --out plan.json | cache-all-active --cache --top 2
    no-recompute --no-recompute --top 3 | fast --reduction fast --top 3 --out plan.json
    overlap --overlap-reductions --explain --out plan.json | overlap-fast --overlap-reductions --reduction fast --json
    clip --clip --top 3 --out plan.json | max-stages --max-stages 2 | max-replicas --max-replicas 1
    no-room-for-stages --max-stages 1 --max-replicas 1 | effort --effort 20 | effort-all --effort 0 --top 2
    gap --gap 5 | search --schedules zb-h1,search --budget 20000 --top 4
    search-json --schedules 1f1b,search --budget 0 --top 2 --json | bad-micro-batch --micro-batch 4,
    doubled-micro-batch --micro-batch 4,4 | large-micro-batch --micro-batch 64 | short-mask --mask 1111
    bad-mask --mask 11111111111x | unknown-schedule --schedules 1f1b,2f2b | doubled-schedule --schedules 1f1b,1f1b
    empty-schedule --schedules 1f1b, | bad-reduction --reduction slow | bad-gap --gap 200 | bad-top --top 0
    bad-effort --effort -1 | bad-budget --budget 5 | unknown-planner --planner nobody
    planner-explained --planner uniform --explain | planner-micro-batch --planner pipe-bd --micro-batch 4
    planner-search --planner uniform --schedules search | steps-alone --steps 5 | switch-time-alone --switch-time 5ms
    samples-alone --samples 500 | plans-per-mask-alone --plans-per-mask 2 | devices-with-profile --devices 3
    out-is-input --out in/chain.json | out-is-empty --out "" | out-is-folder --out in
    forecast-never --forecast in/never.jsonl | forecast-extension --forecast in/broken/trace-extension.jsonl
    forecast-missing --forecast in/absent.jsonl | held-gap --held in/plan-gpipe.json --steps 100 --gap 30
    held-clip --held in/plan-zb-v.json --steps 1000 --clip --overlap-reductions
    held-other-model --held in/plan-fork.json --steps 10 | held-missing --held in/absent.json --steps 10
with $question --forecast in/freeze.jsonl
    forecast | forecast-json --json | forecast-dear --switch-time 10s
    forecast-cheap --switch-time 5ms --plans-per-mask 5 | forecast-decide --decide-every 50 --switch-time 20ms
    forecast-out --switch-time 5ms --clip --out plans/p.json | forecast-memory --samples 4000 --cache-memory 100MB
    forecast-disk --samples 4000 --cache-disk 1GB --cache-disk-bandwidth 2GB/s --cache-disk-latency 0.2ms
    forecast-both --samples 4000 --cache-memory 10MB --cache-memory-bandwidth 10GB/s --cache-memory-latency 1us --cache-disk 1TB --json
    forecast-fast --reduction fast --overlap-reductions | forecast-samples-only --samples 4000
    forecast-no-samples --cache-memory 1GB | forecast-no-room --samples 4000 --cache-memory 0B
    forecast-speed-alone --samples 4000 --cache-memory 1GB --cache-disk-latency 1ms | forecast-cache --cache
    forecast-mask --mask 111111111111 | forecast-held --held in/plan-1f1b.json
    forecast-over-input --out in/freeze.jsonl
with $question --held in/plan-1f1b.json
    held --steps 1000 | held-json --steps 1000 --json | held-mask --mask 000000001111 --steps 1000 --out next.json
    held-dear --mask 000000001111 --steps 100 --switch-time 20s
    held-few-steps --mask 000000001111 --steps 1 --switch-time 20ms --json
    held-micro-batch --steps 100 --micro-batch 4,8 | held-cache --mask 000000001111 --steps 1000 --cache | held-no-steps
    held-bad-steps --steps 0 | held-explained --steps 10 --explain | held-over-input --steps 10 --out in/plan-1f1b.json
with $chain
    no-batch | bad-batch --batch 0 | held-fast --batch 16 --held in/plan-fast.json --steps 1000 --out next.json
    held-other-reduction --batch 16 --held in/plan-fast.json --steps 1000 --reduction exact
    held-other-batch --batch 16 --held in/plan-1f1b.json --steps 10
with $tight --batch 32
    tight --explain | tight-json --explain --json | tight-no-recompute --no-recompute
    forecast-tight --forecast in/freeze.jsonl
with $narrow --batch 32
    narrow | narrow-explain --explain | narrow-json --explain --json | narrow-out --out plan.json
    forecast-narrow --forecast in/freeze.jsonl | held-too-large --held in/plan-1f1b.json --steps 10
with $uneven_devices --batch 32
    uneven --explain | uneven-json --json --out plan.json
    forecast-uneven --schedules 1f1b,zb-h1 --forecast in/freeze.jsonl --json
with $fork
    fork --batch 16 --explain --out plan.json | forecast-other-model --batch 32 --forecast in/freeze.jsonl
with --profile in/chain.json
    hosts --cluster in/hosts.json --batch 64 --explain | sixteen --cluster in/sixteen.json --batch 64 --out plan.json
    free --cluster in/free.json --batch 32 | two --cluster in/two.json --batch 30
    batch-of-one --cluster in/four.json --batch 1
    large-batch --cluster in/four.json --batch 1000 --micro-batch 8 --top 2 | no-cluster --batch 32
    broken-cluster --cluster in/broken/cluster-no-host.json --batch 32
with --graph
    graph in/work.json | graph-json in/work.json --json | graph-devices in/work.json --devices 2
    graph-host in/work-host.json | graph-no-memory in/work-none.json
    graph-bert24 $graphs/LayerGraphs/bert24_training.json
    graph-resnet50 $graphs/LayerGraphs/resnet50_training.json --json
    graph-bert3 $graphs/OperatorGraphs/bert_l-3_inference.json
    graph-states $graphs/OperatorGraphs/bert_l-3_inference.json --states 2000
    graph-with-profile in/work.json --profile in/chain.json | graph-bad-devices in/work.json --devices 0
    graph-missing in/absent.json
"""


def list_plan():
    yield from table("plan", PLAN)
    for name in SCHEDULES:
        asked = f"plan $question --schedules {name} --max-replicas 1 --top 2"
        yield told("plan", f"with-{name}", f"{asked} --out plan.json")
    for name in PLANNERS:
        asked = f"plan $question --planner {name}"
        yield told("plan", f"as-{name}", f"{asked} --out plan.json")
        yield told("plan", f"as-{name}-json", f"{asked} --mask 000111111111 --json")
        yield told("plan", f"as-{name}-tight", f"plan $tight --batch 32 --planner {name}")
    for name in ("alexnet", "vgg16", "gnmt"):
        imported = f"import pipedream $pipedream/{name}.graph.txt --micro-batch-size 64 --out m.json"
        asked = "plan --profile m.json --cluster in/sixteen.json --batch 512 --micro-batch 64 --top 5"
        yield told("plan", f"for-{name}", imported, asked)
    yield from on_broken("plan", "freeze.jsonl", "plan $question --forecast BROKEN")
    yield from on_broken("plan", "work.json", "plan --graph BROKEN")
    kept, simulated = "--clip --overlap-reductions", "simulate --plan plan.json $chain"
    yield told("plan", "and-simulate", f"plan $question {kept} --out plan.json", simulated, f"{simulated} {kept}")
    yield told("plan", "lost-answer", "plan $question --out plan.json", out="/dev/full")
