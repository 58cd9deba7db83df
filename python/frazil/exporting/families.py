"""Tensors that share memory: who is a view of whom, who changed it, and which name a tensor has after a change in place."""

from dataclasses import dataclass, field


@dataclass(eq=False)
class Family:
    """Values in the same memory, and the nodes that changed some of them in place."""

    members: list = field(default_factory=list)
    writers: list = field(default_factory=list)


@dataclass(eq=False)
class SharedWrite:
    """A change in place of memory that has views: what reads or makes a member must stay in the node's layer."""

    node: object
    members: list


class Families:
    """Grows with the program: `join` and `write` are told in the order of its nodes."""

    def __init__(self):
        self._family = {}
        self._newest = {}
        self._first = {}

    def newest(self, value):
        """The value as which a tensor is read now: after a change in place it is the output of that."""
        while value in self._newest:
            value = self._newest[value]
        return value

    def writers_of(self, value):
        return self._of(value).writers

    def members_of(self, value):
        return self._of(value).members

    def join(self, value, other):
        """`other`, just made, is a view of `value`."""
        mine, its = self._of(value), self._of(other)
        if mine is its:
            return
        mine.members.extend(its.members)
        mine.writers.extend(its.writers)
        for member in its.members:
            self._family[member] = mine

    def write(self, node, value, result):
        """`node` changes `value` in place; `result` is the same tensor from now on. Returns a SharedWrite if others see the change."""
        family = self._of(value)
        tensor = self._first.get(value, value)
        others = [member for member in family.members if self._first.get(member, member) is not tensor]
        family.writers.append(node)
        self._newest[value] = result
        self._first[result] = tensor
        self.join(value, result)
        return SharedWrite(node, family.members) if others else None

    def _of(self, value):
        if value not in self._family:
            self._family[value] = Family([value])
        return self._family[value]
