"""A graph captured by torch.export as a Program."""

import operator
import re
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from .capture import user_line
from .families import Families
from .operations import ASSERTIONS, NORMALISATIONS, aliased, argument, base_name, changed_values, draws, qualified_name
from .program import COUNTER, Node, Program, Size, Value
from .recurrent import LayerCalls, is_split
from .refusals import refuse
from .regions import PREPARE, inlined_region, target_name, trace_again, vectorised_part
from .sizes import polynomial

DETACHING = ("detach", "detach_")
FRAME = re.compile(r'File "([^"]+)", line (\d+)')


class _Frame:
    """Stands for a frame of a recorded stack trace."""

    def __init__(self, filename: str, line: str):
        self.filename, self.lineno = filename, line


class Translation:
    """program: that of a captured graph; shared_writes: its SharedWrites (families.py); kept: tensors by Value.

    names: of each parameter and buffer its first name in the model. like: another mode of the same model, whose inputs, parameters,
    buffers and constants this one shares.
    """

    def __init__(self, exported: Any, names: dict, like: Any = None):
        self.names = names
        self.program = Program([], [], [], [], [], [])
        self.shared_writes: list = []
        self.values: dict = {}  # by node of the captured graph: a Value, a list, a number or a Size
        self.families = Families()
        self.tensors = {**exported.state_dict, **exported.constants}
        self.by_name: dict = like.by_name if like else {}
        self.kept: dict = like.kept if like else {}
        self.prefix = "evaluation." if like else ""  # of the names of literals
        self.example: Any = None
        self.graph = exported.graph_module
        self.statistics = _find_statistics(exported.graph_module)
        for node, spec in zip(self.graph.graph.find_nodes(op="placeholder"), exported.graph_signature.input_specs):
            self._add_placeholder(node, spec)
        self._walk(list(self.graph.graph.nodes), self.graph, no_grad=False, path="", source="")
        (result,) = self.graph.graph.find_nodes(op="output")
        self.program.outputs = [self._load(item) for item in result.args[0]]

    def _add_placeholder(self, node: Any, spec: Any) -> None:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            self.values[node] = value
            return
        if spec.kind is InputKind.USER_INPUT:
            self.example = value if self.example is None else self.example
            self.values[node] = self._add_input(node, value)
            return
        name = self.names.get(spec.target, spec.target)
        is_statistic = node in self.statistics or (spec.kind is InputKind.BUFFER and name.endswith(COUNTER))
        kind = "parameter" if spec.kind is InputKind.PARAMETER else "buffer" if is_statistic else "constant"
        is_literal = spec.kind is InputKind.CONSTANT_TENSOR
        self.values[node] = self._named(kind, self.prefix + name if is_literal else name, value, self.tensors[spec.target], is_literal)

    def _add_input(self, node: Any, fake: Any) -> Value:
        key = f"input {len(self.program.inputs)}"
        if key in self.by_name:
            self.program.inputs.append(self.by_name[key])
            return self.by_name[key]
        self.by_name[key] = self._keep("input", fake, self.program.inputs)
        self.by_name[key].tensor = node.target
        return self.by_name[key]

    def _named(self, kind: str, name: str, fake: Any, tensor: Any, is_literal: bool) -> Value:
        if name in self.by_name:
            return self.by_name[name]
        kinds = {"parameter": self.program.parameters, "buffer": self.program.buffers, "constant": self.program.constants}
        value = self._keep(kind, fake, kinds[kind])
        value.tensor = "" if is_literal else name
        value.is_active = kind != "constant"
        value.carries = kind == "parameter"
        self.kept[value] = tensor.detach()
        self.by_name[name] = value
        return value

    def _keep(self, kind: str, fake: Any, among: list) -> Value:
        value = Value(kind, fake.dtype, [polynomial(size) for size in fake.shape], position=len(among))
        among.append(value)
        return value

    def _walk(self, nodes: list, module: Any, no_grad: bool, path: str, source: str) -> None:
        index = 0
        while index < len(nodes):
            part = vectorised_part(nodes, index) if nodes[index].op == "call_function" else []
            if part:
                self._add_part(part, module, no_grad)
            else:
                self._add(nodes[index], module, no_grad, path, source)
            index += len(part) or 1

    def _add(self, node: Any, module: Any, no_grad: bool, path: str, source: str) -> None:
        if node.op == "get_attr" and isinstance(operator.attrgetter(node.target)(module), torch.Tensor):
            tensor = operator.attrgetter(node.target)(module)
            self.values[node] = self._named("constant", f"{self.prefix}{id(module)}.{node.target}", tensor, tensor, True)
        if node.op != "call_function":
            return
        path, source = _path_of(node) or path, _source_of(node) or _source_inside(node, module) or source
        region = inlined_region(node, path, source)
        if region:
            self._add_region(node, region, no_grad, path, source)
        elif node.target is operator.getitem:
            self.values[node] = self._item(self._load(node.args[0]), node.args[1])
        elif isinstance(node.meta.get("val"), (torch.SymInt, int)) or target_name(node) == PREPARE:
            value = polynomial(node.meta["val"], path, source) if "val" in node.meta else None
            self.values[node] = value if not isinstance(value, (str, list)) else Size(value)
        elif isinstance(node.target, torch._ops.OpOverload):
            self._add_operation(node, no_grad, path, source)
        elif not isinstance(node.meta.get("val"), (torch.SymBool, bool)) and node.users:
            refuse(f"contains {target_name(node)}, which is no operation on tensors", path, source)

    @staticmethod
    def _item(values: Any, index: int) -> Any:
        return values[index]

    def _add_region(self, node: Any, region: tuple, no_grad: bool, path: str, source: str) -> None:
        inner, arguments, mode = region
        for placeholder, argument in zip(inner.graph.find_nodes(op="placeholder"), arguments):
            self.values[placeholder] = self._load(argument)
        self._walk(list(inner.graph.nodes), inner, {"no_grad": True, "grad": False, "same": no_grad}[mode], path, source)
        (result,) = inner.graph.find_nodes(op="output")
        items = result.args[0]
        self.values[node] = [self._load(item) for item in items] if isinstance(items, (list, tuple)) else self._load(items)

    def _add_part(self, part: list, module: Any, no_grad: bool) -> None:
        path, source = next(((_path_of(n), _source_of(n)) for n in part if _source_of(n)), ("", ""))
        traced, tensors, made = trace_again(part, module, self.example)
        read = [self._load(one) for one in tensors]
        if any(value.is_active for value in read):
            refuse("uses torch.vmap on what depends on parameters, expected plain operations", path, source)
        for placeholder, value in zip(traced.graph.find_nodes(op="placeholder"), [self.program.inputs[0], *read]):
            self.values[placeholder] = value
        self._walk(list(traced.graph.nodes), traced, no_grad, path, source)
        (result,) = traced.graph.find_nodes(op="output")
        for node, item in zip(made, result.args[0]):
            self.values[node] = self._load(item)

    def _add_operation(self, node: Any, no_grad: bool, path: str, source: str) -> None:
        operation = node.target
        name = base_name(operation)
        if name in ASSERTIONS:
            return
        if operation.namespace != "aten":
            refuse(f"calls {qualified_name(operation)}, which is no operation of PyTorch itself", path, source)
        arguments, keywords = self._loaded(list(node.args)), {key: self._loaded(value) for key, value in node.kwargs.items()}
        if any(value.tensor.endswith(COUNTER) for value in changed_values(operation, arguments, keywords)):
            return
        if argument(operation, arguments, keywords, "sparse"):
            refuse(f"{qualified_name(operation)} has sparse gradients, expected sparse=False", path, source)
        made = Node(operation, arguments, keywords, [], no_grad, path=path, source=source)
        if is_split(made):
            self.values[node] = LayerCalls(name, arguments, lambda *call: self._add_call(made, *call)).split()
            return
        self._note_reads(made)
        self._add_outputs(node, made, path, source)
        self.program.nodes.append(made)
        self._note_memory(made)

    def _note_reads(self, made: Node) -> None:
        made.draws = draws(made.operation, made.arguments, made.keywords, made.path, made.source)
        made.is_active = made.draws or any(value.is_active for value in made.reads())
        made.after = list(dict.fromkeys(writer for value in made.reads() for writer in self.families.writers_of(value)))

    def _add_call(self, whole: Node, operation: Any, arguments: list, shapes: list) -> list:
        """Adds a part of the call `whole`, with outputs of these shapes."""
        made = Node(operation, arguments, {}, [], whole.no_grad, path=whole.path, source=whole.source)
        self._note_reads(made)
        carries = not made.no_grad and any(value.carries for value in made.reads())
        dtype = made.reads()[0].dtype
        made.outs = [Value("node", dtype, shape, is_active=made.is_active, carries=carries, node=made) for shape in shapes]
        self.program.nodes.append(made)
        return made.outs

    def _add_outputs(self, node: Any, made: Node, path: str, source: str) -> None:
        fake = node.meta.get("val")
        carries = not made.no_grad and base_name(made.operation) not in DETACHING and any(value.carries for value in made.reads())
        if isinstance(fake, torch.Tensor):
            made.outs = [self._output(made, fake, carries)]
            self.values[node] = made.outs[0]
            return
        if not isinstance(fake, (list, tuple)):
            refuse(f"{qualified_name(made.operation)} gives a value that is no tensor", path, source)
        read = {user.args[1] for user in node.users if user.target is operator.getitem}
        outs = [self._output(made, item, carries) if index in read else None for index, item in enumerate(fake)]
        self.values[node] = outs
        made.outs = outs if len(made.operation._schema.returns) > 1 else [outs]

    def _output(self, made: Node, fake: Any, carries: bool) -> Value:
        shape = [polynomial(size, made.path, made.source) for size in fake.shape]
        is_real = fake.dtype.is_floating_point
        return Value("node", fake.dtype, shape, is_active=made.is_active, carries=carries and is_real, node=made)

    def _note_memory(self, made: Node) -> None:
        operation = made.operation
        changed = changed_values(operation, made.arguments, made.keywords)
        for value in changed:
            self._refuse_state(made, value)
            if len(made.makes()) != 1:
                refuse(f"{qualified_name(operation)} changes its operand and returns something else", made.path, made.source)
            shared = self.families.write(made, value, made.makes()[0])
            if shared:
                self.shared_writes.append(shared)
                _spread(made, shared.members)
        for position in aliased(operation) if not changed else []:
            value = made.arguments[position] if position < len(made.arguments) else None
            for result in made.makes() if isinstance(value, Value) else []:
                self.families.join(value, result)

    def _refuse_state(self, made: Node, value: Value) -> None:
        """Refuses a change of what the model keeps from step to step, by itself or through a view of it."""
        operation = qualified_name(made.operation)
        for member in self.families.members_of(value):
            if member.kind not in ("node", "input"):
                what = f"the {'parameter' if member.kind == 'parameter' else 'buffer'} {member.tensor}" if member.tensor else "a constant"
                refuse(f"{operation} changes {what} in place, which a model file cannot hold", made.path, made.source)
        if any(value is item for item in made.keywords.values()):
            refuse(f"{operation} writes through out=, expected an operation that returns its result", made.path, made.source)

    def _loaded(self, item: Any) -> Any:
        if isinstance(item, (list, tuple)):
            return [self._loaded(one) for one in item]
        return self._load(item)

    def _load(self, item: Any) -> Any:
        if not isinstance(item, torch.fx.Node):
            return item
        value = self.values[item]
        return self.families.newest(value) if isinstance(value, Value) else value


def _spread(writer: Node, members: list) -> None:
    """What an active node writes into is active from now on, and so is what made it: it cannot be made again elsewhere."""
    for member in members if writer.is_active else []:
        member.is_active = True
        member.carries = member.carries or writer.makes()[0].carries
        if member.node:
            member.node.is_active = True


def _source_inside(node: Any, module: Any) -> str:
    """The source line of the first operation of a region, which has none of its own."""
    inner = [module.get_submodule(one.target) for one in node.all_input_nodes if one.op == "get_attr" and hasattr(module, one.target)]
    nodes = [one for graph in inner if isinstance(graph, torch.fx.GraphModule) for one in graph.graph.nodes]
    return next((_source_of(one) for one in nodes if _source_of(one)), "")


def _find_statistics(module: Any) -> set:
    """The placeholders that a normalisation in training changes. Refuses those that several change."""
    found = set()
    for node in module.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and base_name(node.target) in NORMALISATIONS:
            kept = [argument for argument in node.args[3:5] if argument is not None] if node.args[5] else []
            if found.intersection(kept):
                refuse("updates the same running statistics a second time", _path_of(node), _source_of(node))
            found.update(kept)
    return found


def _path_of(node: Any) -> str:
    stack = node.meta.get("nn_module_stack")
    return re.sub(r"@\d+", "", list(stack.values())[-1][0]) if stack else ""


def _source_of(node: Any) -> str:
    return user_line([_Frame(*found) for found in FRAME.findall(node.meta.get("stack_trace") or "")])
