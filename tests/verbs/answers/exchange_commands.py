"""The commands of `frazil import` and `frazil export`."""

from commands import on_broken, table, told
from plan_files import SCHEDULES

IMPORT = """
csv-split csv in/split.csv --out m.json | nothing --out m.json | unknown chakra in/chain.json --out m.json
with kineto
    kineto $trace --out m.json | kineto-json $trace --out m.json --micro-batch-size 8 --model net --json
    kineto-micro-batches $trace --out m.json --micro-batches 2
    kineto-ranges $trace --out m.json --layer-ranges nn.Module
    kineto-no-range $trace --out m.json --layer-ranges nowhere | kineto-none --out m.json
    kineto-twice $trace $trace --out m.json | kineto-no-trace in/chain.json --out m.json
    kineto-missing in/absent.json --out m.json | kineto-with-plan $trace --out m.json --plan in/plan-1f1b.json
with csv in/table.csv
    csv --out m.json | csv-json --out m.json --micro-batch-size 4 --model table --json | csv-no-out
    csv-two in/split.csv --out m.json | csv-over-input --out in/table.csv
    csv-bad-size --out m.json --micro-batch-size 0
with pipedream
    pipedream-small in/graph.txt --out m.json
    pipedream-json in/graph.txt --out m.json --micro-batch-size 2 --model small --json
    pipedream-no-graph in/table.csv --out m.json | pipedream-legacy in/graph.txt --out m.json --legacy
with sailor
    sailor $plans_of_sailor/N2/plan_config_N2_D1.json $sailor --out out
    sailor-json $plans_of_sailor/N16/plan_config_N16_D8.json $sailor --out out --json
    sailor-large $plans_of_sailor/N32/plan_config_N32_D16.json $sailor --out out
    sailor-no-data $plans_of_sailor/N2/plan_config_N2_D1.json --out out | sailor-no-plan $sailor --out out
    sailor-other-file in/chain.json $sailor --out out
    sailor-other-folder $plans_of_sailor/N2/plan_config_N2_D1.json --data in --out out
    sailor-empty-out $plans_of_sailor/N2/plan_config_N2_D1.json $sailor --out ""
    sailor-model $plans_of_sailor/N2/plan_config_N2_D1.json $sailor --out out --model x
with pytorch-csv in/schedule.csv
    pytorch-legacy --legacy --plan in/plan-lists.json $pair --out plan.json
    pytorch-refused --plan in/plan-lists.json $pair --out plan.json | pytorch-no-plan $pair --out plan.json
    pytorch-model --plan in/plan-lists.json $pair --out plan.json --model x
    pytorch-two-pipelines --legacy --plan in/plan-two-by-two.json $chain --out plan.json
"""
EXPORT = """
no-format --out t.csv $small | unknown-format --to pdf --out t.csv $small
with --to chakra --out t
    chakra-plan $planned | chakra-replicas --plan in/plan-two-by-two.json $chain
    chakra-shared --plan in/plan-shared.json $chain | chakra-what-if --stages 2 --micro-batches 3 --schedule zb-h1
with --to chrome
    chrome-plan --out t.json $planned | chrome-what-if --out t.json $uneven --schedule zb-v
    chrome-per-device --per-device --out t.json --plan in/plan-two-by-two.json $chain
    chrome-per-device-2 --per-device --out t.json $small
with --to svg
    svg-plan --out t.svg $planned | svg-replicas --out t.svg --plan in/plan-two-by-two.json $chain
    svg-what-if --out t.svg $even --schedule dualpipe | no-out $small | empty-out --out "" $small | neither --out t.svg
    both --out t.svg $planned --stages 4
    profile-of-what-if --out t.svg --stages 4 --micro-batches 8 --schedule 1f1b --profile in/chain.json
    comms-of-svg --comms --out t.svg $planned | per-device-of-svg --per-device --out t.svg $planned
    over-input --out in/plan-1f1b.json $planned | too-little-memory --out t.svg --plan in/plan-gpipe.json $narrow
    broken-plan --out t.svg --plan in/broken/plan-comma.json $chain
with --to html --out t.html
    html-plan $planned | html-what-if $odd --schedule 1f1b | html-fork --plan in/plan-fork.json $fork
with --to pytorch-csv
    search --out t.csv $uneven --schedule search --budget 20000 | lists --out t.csv --plan in/plan-lists.json $pair
    replicas --comms --out t.csv --plan in/plan-two-by-two.json $chain
    unequal --out t.csv --plan in/plan-unequal.json $chain | shared --out t.csv --plan in/plan-shared.json $chain
    recompute --out t.csv --plan in/plan-recompute.json $pair | dispatched --out t.csv --plan in/plan-fifo.json $pair
    per-device-of-csv --per-device --out t.csv $planned
"""
EXPORTED_AND_IMPORTED = "gpipe 1f1b zb-h1 interleaved-1f1b zb-v dualpipev v-min".split()


def list_import():
    yield from table("import", IMPORT)
    for name in ("alexnet", "gnmt", "gnmt_large", "resnet50", "vgg16"):
        asked = f"import pipedream $pipedream/{name}.graph.txt --micro-batch-size 64 --out m.json"
        yield told("import", f"pipedream-{name}", asked)
    for name in EXPORTED_AND_IMPORTED:
        plan = f"--plan in/plan-{name}.json $chain"
        exported = f"export --to pytorch-csv --out s.csv {plan}"
        exported_comms = f"export --to pytorch-csv --comms --out s.csv {plan}"
        imported = f"import pytorch-csv s.csv {plan} --out again.json"
        yield told("import", f"pytorch-{name}", exported, imported)
        yield told("import", f"pytorch-{name}-comms", exported_comms, f"{imported} --json")
    imported = "import sailor $plans_of_sailor/N4/plan_config_N4_D2.json $sailor --out out"
    simulated = "simulate --explain --plan out/plan.json --profile out/profile.json --cluster out/cluster.json"
    yield told("import", "sailor-and-simulate", imported, simulated)
    legacy = "--legacy --plan in/plan-lists.json $pair --out plan.json"
    yield from on_broken("import", "table.csv", "import csv BROKEN --out m.json")
    yield from on_broken("import", "graph.txt", "import pipedream BROKEN --out m.json")
    yield from on_broken("import", "schedule.csv", f"import pytorch-csv BROKEN {legacy}")


def list_export():
    yield from table("export", EXPORT)
    for name in SCHEDULES:
        shape = f"--stages 4 --micro-batches 8 --schedule {name}"
        yield told("export", f"{name}", f"export --to pytorch-csv --out t.csv {shape}")
        yield told("export", f"{name}-comms", f"export --to pytorch-csv --out t.csv {shape} --comms")
        yield told("export", f"{name}-svg", f"export --to svg --out t.svg {shape}")
