"""Operators under construction, and the merging of element-wise ones into their neighbours."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from onchip.base.allowance import spend
from onchip.network import Geometry

__all__ = ["Draft", "Merging"]


@dataclass(eq=False)
class Draft:
    """An operator under construction; tensors are named by the values that hold them."""

    name: str
    types: deque[str]
    nodes: set[int]
    inputs: dict[str, None]
    outputs: list[str]
    weights: dict[str, int] = field(default_factory=dict)
    """Bytes by the constant they come from: a constant that is read twice is fetched once."""
    elementwise: bool = False
    geometry: Geometry | None = None


class Merging:
    """Passes over the drafts in their order; a draft is checked again only if something near it changed.

    Repeated passes over all drafts until nothing changes give the same result, but take as many passes as
    there are drafts if each merger makes the next one possible.
    """

    def __init__(
        self,
        drafts: list[Draft],
        root: Callable[[str], str],
        elements: Callable[[str], int],
        bytes_: Callable[[str], int],
        keep: set[str],
    ) -> None:
        self.drafts, self.root, self.elements, self.keep = drafts, root, elements, keep
        self.bytes = bytes_
        self.makers = {name: i for i, draft in enumerate(drafts) for name in draft.outputs}
        self.readers: dict[str, dict[int, int]] = {}
        """By tensor, the drafts that read it and how many of their inputs are parts of it."""
        for i, draft in enumerate(drafts):
            for name in draft.inputs:
                among = self.readers.setdefault(root(name), {})
                among[i] = among.get(i, 0) + 1
        self.gone = [False] * len(drafts)
        self.now: list[int] = []
        self.due: set[int] = set()
        self.later: set[int] = set()

    def run(self) -> list[Draft]:
        """Merge until nothing changes; return the remaining drafts, in order."""
        self.later = {i for i, draft in enumerate(self.drafts) if draft.elementwise}
        self._settle()
        for i, draft in enumerate(self.drafts):
            if not self.gone[i] and draft.elementwise and self._join_alone(i):
                self.gone[i] = True
                self._settle()
        return [draft for i, draft in enumerate(self.drafts) if not self.gone[i]]

    def _settle(self) -> None:
        """Merge into readers and producers until nothing changes."""
        while self.later:
            self.now, self.due, self.later = sorted(self.later), self.later, set()
            while self.now:
                i = heapq.heappop(self.now)
                self.due.discard(i)
                draft = self.drafts[i]
                if self.gone[i] or not draft.elementwise:
                    continue
                spend(f"operator {draft.name}")
                self.gone[i] = self._join_reader(i) or self._join_producer(i)

    def _touch(self, changed: Iterable[int], at: int) -> None:
        """Check drafts again: those behind the current one in this pass, the others in the next."""
        for i in changed:
            if i <= at:
                self.later.add(i)
            elif i not in self.due:
                self.due.add(i)
                heapq.heappush(self.now, i)

    def _only_reader(self, name: str) -> int | None:
        among = self.readers.get(name, {})
        if len(among) != 1:
            return None
        [(reader, parts)] = among.items()
        return reader if parts == 1 else None

    def _join_reader(self, i: int) -> bool:
        draft = self.drafts[i]
        [output] = draft.outputs
        after = self._only_reader(output)
        if output in self.keep or after is None or not draft.inputs:
            return False
        reader = self.drafts[after]
        if not reader.elementwise or output not in reader.inputs:
            return False
        if len(draft.inputs) >= len(reader.inputs) or any(n not in reader.inputs for n in draft.inputs):
            return False
        if self.elements(output) != self.elements(reader.outputs[0]):
            return False
        self._give(i, after)
        return True

    def _join_alone(self, i: int) -> bool:
        """Merge a function of one value into its one reader, which is a function of that value, too.

        `x / 2` in a GELU: its other factor is a function of x. The reader then reads x, of as many bytes.
        """
        draft = self.drafts[i]
        [output] = draft.outputs
        after = self._only_reader(output)
        if output in self.keep or after is None or len(draft.inputs) != 1:
            return False
        [name], reader = draft.inputs, self.drafts[after]
        if not reader.elementwise or output not in reader.inputs or self.root(name) != name:
            return False
        if not self.elements(name) == self.elements(output) == self.elements(reader.outputs[0]):
            return False
        if self.bytes(name) > self.bytes(output):
            return False
        if "QuantizeLinear" in draft.types or any(
            not self._function_of(name, other, after)
            for other in reader.inputs
            if other not in (name, output)
        ):
            return False
        self._give(i, after)
        return True

    def _function_of(self, name: str, other: str, after: int) -> bool:
        """Return whether `other` is a function of `name` alone that only the draft `after` reads."""
        maker = self.makers.get(other)
        if maker is None or self._only_reader(other) != after:
            return False
        return self.drafts[maker].elementwise and [*self.drafts[maker].inputs] == [name]

    def _give(self, i: int, after: int) -> None:
        """Let the reader of a draft's result compute it."""
        draft, reader = self.drafts[i], self.drafts[after]
        [output] = draft.outputs
        reader.nodes = _both(draft.nodes, reader.nodes)
        reader.types = _joined(draft.types, reader.types)
        if draft.weights:
            reader.weights = draft.weights | reader.weights
        del reader.inputs[output]
        del self.readers[output]
        changed = [after]
        for name in draft.inputs:
            among = self.readers[self.root(name)]
            if name not in reader.inputs:
                reader.inputs[name] = None
                among[after] = among.get(after, 0) + 1
            among[i] -= 1
            if not among[i]:
                del among[i]
            if name in self.makers:
                changed.append(self.makers[name])
            if self.root(name) in self.makers:
                changed.append(self.makers[self.root(name)])
            if len(among) == 1:
                changed += among
        self._touch(changed, i)

    def _join_producer(self, i: int) -> bool:
        draft = self.drafts[i]
        if len(draft.inputs) != 1:
            return False
        [name] = draft.inputs
        [output] = draft.outputs
        before = self.makers.get(name)
        if before is None or name in self.keep or self._only_reader(name) is None:
            return False
        producer = self.drafts[before]
        if len(producer.outputs) != 1 or self.elements(name) != self.elements(output):
            return False
        producer.nodes = _both(draft.nodes, producer.nodes)
        producer.types = _joined(producer.types, draft.types)
        if draft.weights:
            producer.weights.update(draft.weights)
        producer.outputs = [output]
        del self.readers[name]
        self.makers[output] = before
        self._touch([before, *([r] if (r := self._only_reader(output)) is not None else [])], i)
        return True


def _both(one: set[int], other: set[int]) -> set[int]:
    """Add the smaller of two sets to the larger, in place, and return the larger."""
    small, large = sorted((one, other), key=len)
    large |= small
    return large


def _joined(first: deque[str], second: deque[str]) -> deque[str]:
    """Return the words of both in order; the fewer are moved."""
    if len(first) < len(second):
        second.extendleft(reversed(first))
        return second
    first.extend(second)
    return first
