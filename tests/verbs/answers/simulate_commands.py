"""The commands of `frazil simulate`."""

from commands import on_broken, table, told
from plan_files import SCHEDULES

SIMULATE = """
schedules --schedule help | compare-odd $odd --compare | compare-chunks --plan in/plan-zb-v.json $chain --compare
compare-both-ways --plan in/plan-bitpipe.json $chain --compare
search-plan-zb --plan in/plan-zb-2p.json $chain --schedule search --budget 50000 --json
one-stage --stages 1 --micro-batches 3 --schedule gpipe --forward 1us --backward-input 2us --backward-weight 3us
large --stages 32 --micro-batches 256 --schedule 1f1b $ms
large-zb --stages 16 --micro-batches 64 --schedule zb-2p --forward 1ms --backward-input 0.9ms --backward-weight 0.6ms --hop 33us --json
small-units --stages 2 --micro-batches 2 --schedule 1f1b --forward 7ns --backward-input 1.5us --backward-weight 0.002s
contention --plan in/plan-zb-v.json $chain --share-links --block-sends --buffers 2
overlap --plan in/plan-two-by-two.json $chain --overlap-reductions
overlap-fast --plan in/plan-fast.json $chain --overlap-reductions --bucket 1MiB --json
replicas --plan in/plan-replicas.json $pair | replicas-explain --plan in/plan-replicas.json $pair --explain
two-by-two --plan in/plan-two-by-two.json $chain --explain | unequal --plan in/plan-unequal.json $chain
shared --plan in/plan-shared.json $chain --explain | samples --plan in/plan-samples.json $chain --explain --json
samples-exact --plan in/plan-samples-exact.json $chain | recompute --plan in/plan-recompute.json $pair --json
offload --plan in/plan-offload.json $chain | fast --plan in/plan-fast.json $chain
deadlocked --plan in/plan-deadlocked.json $pair | dispatched --plan in/plan-fifo.json $pair --explain
given-in-flight --plan in/plan-in-flight.json $pair | fork --plan in/plan-fork.json $fork --explain
no-plan --profile in/chain.json --cluster in/four.json | missing-plan --plan in/absent.json $chain
folder-for-file --plan in $chain | wrong-kind --plan in/four.json $chain
doubled-stages $odd --schedule 1f1b --stages 4 | no-stages --stages 0 --micro-batches 8 --schedule 1f1b $ms
half-a-stage --stages 1.5 --micro-batches 8 --schedule 1f1b $ms
too-many-stages --stages 99999999999 --micro-batches 8 --schedule 1f1b $ms
with $even --schedule 1f1b
    explain --explain | explain-json --explain --json | messages --messages | jitter --jitter 5
    change-device --change "device 2 x1.5" | change-straggler --change "straggler 3 +30%"
    change-link --change "link 0>1 x2" | change-bad-text --change "device 2 faster"
    change-bad-factor --change "device 2 x0" | change-bad-percent --change "straggler 2 30"
    change-no-device --change "device 9 x2" | out --out line.csv --chrome trace.json | bad-in-flight --in-flight 0
    fits-alone --fits 3 | objective-alone --objective span | budget-alone --budget 5 | draws-alone --draws 5
    jitter-too-much --jitter 101 | jitter-too-fine --jitter 1.23456 | contention-of-what-if --share-links
    clip-of-what-if --clip | out-is-empty --out "" | out-is-full --out /dev/full
with $even
    explain-interleaved --schedule interleaved-1f1b --chunks 3 --explain
    messages-json --schedule dualpipe --messages --json | change-layer --schedule zb-h1 --change "layer 3 x0.5"
    compare --compare | compare-json --compare --json | compare-fits --compare --fits 5
    compare-fits-none --compare --fits 1 | search --schedule search --budget 100000 | no-schedule
    unknown-schedule --schedule 2f2b | policy-of-what-if --schedule fifo | bad-chunks --schedule zb-v --chunks 3
    bad-objective --schedule search --objective fun | compare-explained --compare --explain
    compare-changed --compare --change "device 1 x2"
with $uneven
    explain-uneven --schedule zb-h1 --explain | jitter-json --schedule zb-v --jitter 2.5 --draws 50 --seed 7 --json
    compare-uneven --compare | search-span --schedule search --objective span --budget 50000 --json
    search-none --schedule search --budget 0
with $planned
    explain-plan --explain | messages-plan --messages | messages-plan-json --messages --explain --json
    jitter-plan --jitter 10 --draws 30 | change-latency --change "link 0>1 latency x20"
    change-transfer --change "link 1>2 transfer x0.5" --json | change-free-layer --change "layer 5 x0"
    change-several --change "device 1 x2" --change "layer 0 x3" --change "link 2>3 x9"
    change-no-layer --change "layer 12 x2" | compare-plan --compare | compare-plan-json --compare --clip --json
    search-plan --schedule search --budget 50000 | fifo --schedule fifo | priority --schedule priority --json
    lrtf --schedule lrtf | out-in-folder --out new/folder/line.csv | micro-batches --micro-batches 16
    micro-batches-short --micro-batches 5 | micro-batches-none --micro-batches 33 | in-flight --in-flight 2
    share-links --share-links | block-sends --block-sends | buffers --buffers 1 --json | rendezvous --buffers 0
    clip --clip | steal --schedule steal | stages-with-plan --stages 4 | hop-with-plan --hop 1ms
    bucket-alone --bucket 1MiB | bucket-of-exact --overlap-reductions --bucket 1MiB | bad-buffers --buffers -1
    out-is-input --out in/plan-1f1b.json | out-is-both --out line.csv --chrome ./line.csv | out-is-folder --out in
with --plan in/plan-lists.json
    lists $pair --out line.csv | lists-messages $pair --messages | lists-too-few $chain
    lists-in-flight $pair --in-flight 2 | lists-divided $pair --micro-batches 8
    lists-other $pair --micro-batches 8 --schedule zb-h1
with --plan in/plan-gpipe.json
    wait-for-memory --profile in/chain.json --cluster in/snug.json --wait-for-memory
    wait-for-nothing $tight --wait-for-memory | too-little-memory $tight | too-little-json $narrow --json
with --plan in/plan-1f1b.json
    uneven-devices $uneven_devices --explain | hosts --profile in/chain.json --cluster in/hosts.json
    free-links --profile in/chain.json --cluster in/free.json | other-model $fork | no-profile --cluster in/four.json
    no-cluster --profile in/chain.json | missing-profile --profile in/absent.json --cluster in/four.json
with --stages 4 --micro-batches 8 --schedule 1f1b
    no-times | list-too-short --forward 1ms,2ms --backward-input 1ms --backward-weight 1ms
    no-unit --forward 1 --backward-input 1ms --backward-weight 1ms
    negative-time --forward=-1ms --backward-input 1ms --backward-weight 1ms
    too-long-time --forward 99999999999s --backward-input 1ms --backward-weight 1ms
"""


def list_simulated_schedules():
    for name in SCHEDULES:
        planned = f"simulate --plan in/plan-{name}.json $chain"
        yield told("simulate", f"{name}-even", f"simulate $even --schedule {name}")
        yield told("simulate", f"{name}-uneven", f"simulate $uneven --schedule {name} --json")
        yield told("simulate", f"{name}-odd", f"simulate $odd --schedule {name}")
        yield told("simulate", f"{name}-in-flight", f"simulate $even --in-flight 3 --schedule {name}")
        yield told("simulate", f"{name}-chunks", f"simulate $even --chunks 4 --schedule {name}")
        yield told("simulate", f"{name}-plan", f"{planned} --out line.csv")
        yield told("simulate", f"{name}-plan-json", f"{planned} --explain --json")
        yield told("simulate", f"{name}-instead", f"simulate $planned --schedule {name}")


def list_simulate():
    yield from list_simulated_schedules()
    yield from table("simulate", SIMULATE)
    yield told("simulate", "lost-answer", "simulate $even --schedule 1f1b", out="/dev/full")
    for sources, files in [
        ("chain.json", "--plan in/plan-1f1b.json --profile BROKEN --cluster in/four.json"),
        ("four.json hosts.json", "--plan in/plan-1f1b.json --profile in/chain.json --cluster BROKEN"),
        ("plan-1f1b.json plan-pipedream.json", "--plan BROKEN $chain"),
        ("plan-lists.json plan-fifo.json", "--plan BROKEN $pair"),
    ]:
        yield from on_broken("simulate", sources, f"simulate {files}")
