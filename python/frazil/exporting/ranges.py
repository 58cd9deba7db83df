"""Where a program is cut: contiguous ranges of its active nodes, each to be a layer."""

from dataclasses import dataclass, field
from typing import Any

import torch

from .program import Program, Value
from .refusals import refuse


@dataclass(eq=False)
class Range:
    """Active nodes of one layer, in program order. `block`: the module path of a block, empty before, between and behind blocks."""

    block: str
    unit: str
    nodes: list = field(default_factory=list)
    number: int = 0  # of the stretch of nodes in which its block lies

    def parameters(self) -> list:
        return list(dict.fromkeys(value for node in self.nodes for value in node.reads() if value.kind == "parameter"))


def list_blocks(model: torch.nn.Module) -> list:
    """Module paths: the children of each outermost ModuleList; without any, those of each outermost Sequential, else of the model."""
    for kind in (torch.nn.ModuleList, torch.nn.Sequential):
        outermost: list = []
        for path, module in model.named_modules():
            is_inside = any(path.startswith(prefix) for prefix in outermost)
            if isinstance(module, kind) and not is_inside:
                outermost.append(f"{path}." if path else "")
        if outermost:
            return [f"{prefix}{name}" for prefix in outermost for name in _children(model.get_submodule(prefix.rstrip(".")))]
    return _children(model)


def _children(module: torch.nn.Module) -> list:
    """The names of all children; one that stands in several places has the names of all of them, as nodes that it runs have."""
    return [name for name, child in module._modules.items() if child is not None]


def check_cuts(model: torch.nn.Module, cuts: Any) -> list:
    """The module paths at which layers begin and end, besides the blocks."""
    if cuts == "blocks":
        return []
    known = {path for path, _ in model.named_modules()}
    for path in [cuts] if isinstance(cuts, str) else cuts:
        if isinstance(cuts, str) or path not in known:
            refuse(f'found the cut "{path}", expected "blocks" or paths of modules')
    return list(cuts)


def list_needed(program: Program, outputs: list) -> list:
    """The nodes on which these values depend, in program order. Refuses random draws that nothing needs: eager PyTorch would draw them."""
    needed = closure([value.node for value in outputs if value.node])
    for node in program.nodes:
        if node.draws and node not in needed:
            refuse("draws random numbers for something that the loss does not read", node.path, node.source)
    return [node for node in program.nodes if node in needed]


def closure(nodes: list, takes: Any = lambda _: True) -> set:
    """The nodes, and all that they need among those that `takes` accepts."""
    found: set = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node in found or not takes(node):
            continue
        found.add(node)
        waiting.extend(value.node for value in node.reads() if value.node)
        waiting.extend(node.after)
    return found


def cut(nodes: list, blocks: list, cuts: list) -> list:
    """Ranges of the active ones among these nodes: cut at the borders of blocks and of the modules of `cuts`, each with a parameter.

    A node that reads a parameter of several ranges is in a range without other parameters; if it reads others itself, the ranges from the
    first to the last reader are one, with all readers of what those read.
    """
    ranges = _cut_at_modules([node for node in nodes if node.is_active], blocks, cuts)
    ranges = _merge_bare(ranges)
    merged: set = set()
    while True:
        tied = tied_parameters(ranges)
        finer = [part for one in ranges for part in _isolate(one, tied)]
        inseparable = _first_inseparable(finer, tied_parameters(finer))
        if inseparable:
            assert inseparable not in merged, "one range reads what was merged, and is not cut again"
            merged.add(inseparable)
            ranges = _merge_readers(finer, inseparable)
        elif len(finer) == len(ranges):
            return ranges
        else:
            ranges = finer


def tied_parameters(ranges: list) -> set:
    """The parameters that nodes of several ranges read."""
    readers: dict = {}
    for one in ranges:
        for parameter in one.parameters():
            readers[parameter] = readers.get(parameter, 0) + 1
    return {parameter for parameter, count in readers.items() if count > 1}


def _cut_at_modules(nodes: list, blocks: list, cuts: list) -> list:
    ranges: list = []
    number = 0
    for node in nodes:
        block, unit = _owner(node.path, blocks), _owner(node.path, cuts)
        if not ranges or (ranges[-1].block, ranges[-1].unit) != (block, unit):
            number += not ranges or ranges[-1].block != block
            ranges.append(Range(block, unit, number=number))
        ranges[-1].nodes.append(node)
    return ranges


def _owner(path: str, modules: list) -> str:
    """The innermost of the modules in which a path lies; empty if none."""
    owners = [module for module in modules if path == module or path.startswith(module + ".")]
    return max(owners, key=len, default="")


def _merge_bare(ranges: list) -> list:
    """Ranges without a parameter join the one before them, the first joins the next."""
    merged: list = []
    for one in ranges:
        if merged and not one.parameters():
            merged[-1].nodes.extend(one.nodes)
        elif merged and not merged[-1].parameters():
            one.nodes = merged.pop().nodes + one.nodes
            merged.append(one)
        elif merged and (merged[-1].block, merged[-1].unit) == (one.block, one.unit):
            merged[-1].nodes.extend(one.nodes)
        else:
            if merged and merged[-1].block == one.block:
                one.number = merged[-1].number
            merged.append(one)
    return merged


def _first_inseparable(ranges: list, tied: set) -> Any:
    """A tied parameter that some node reads together with others; None if there is none."""
    for node in (node for one in ranges for node in one.nodes):
        mine = list(dict.fromkeys(value for value in node.reads() if value.kind == "parameter"))
        for value in mine if len(mine) > 1 else []:
            if value in tied:
                return value
    return None


def _merge_readers(ranges: list, parameter: Value) -> list:
    """The ranges, with those from the first reader of the parameter to the last as one, and so those of all that it reads: it is never cut."""
    inside = {parameter}
    while True:
        places = [index for index, one in enumerate(ranges) if not inside.isdisjoint(one.parameters())]
        first, last = places[0], places[-1]
        wider = {value for one in ranges[first : last + 1] for value in one.parameters()}
        if wider == inside:
            break
        inside = wider
    whole = Range(ranges[first].block, ranges[first].unit, number=ranges[first].number)
    whole.nodes = [node for one in ranges[first : last + 1] for node in one.nodes]
    return [*ranges[:first], whole, *ranges[last + 1 :]]


def _isolate(one: Range, tied: set) -> list:
    """The range, cut so that each node that reads a tied parameter is the only one with parameters in its part."""
    parts = [Range(one.block, one.unit, number=one.number)]
    for node in one.nodes:
        mine = {value for value in node.reads() if value.kind == "parameter"}
        theirs = set(parts[-1].parameters())
        if mine and theirs and (mine & tied or theirs & tied):
            parts.append(Range(one.block, one.unit, number=one.number))
        parts[-1].nodes.append(node)
    return parts


def check_writes(writes: list, place: dict) -> None:
    """Refuses changes in place of memory of which another layer holds a view. place: the range of each node."""
    for write in writes:
        if write.node not in place:
            continue
        makers = {place.get(member.node) for member in write.members if isinstance(member, Value) and member.node}
        if makers - {None} != {place[write.node]}:
            refuse("changes in place a view of a tensor that crosses a cut between layers", write.node.path, write.node.source)
