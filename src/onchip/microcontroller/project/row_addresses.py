"""Addresses of rows in C: a base and a pitch where rows lie evenly, a table where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onchip.microcontroller.project.text import Text, plus, times

__all__ = ["Tables"]

WORD = 4


@dataclass
class Tables:
    """Tables of addresses that are written so far; `bytes` is what they take of the flash."""

    out: Text = field(default_factory=Text)
    bytes: int = 0

    def place(self, name: str, addresses: Sequence[int], row: str) -> str:
        """Return the place in the array of a row, of this number, of a map with these addresses."""
        first = addresses[0]
        pitch = addresses[1] - first if len(addresses) > 1 else 0
        if all(at == first + n * pitch for n, at in enumerate(addresses)):
            if pitch < 0:
                return f"arena + {first} - {times(row, -pitch)}"
            return plus(plus("arena", str(first)), times(row, pitch)) if pitch else plus("arena", str(first))
        turn = next(n for n in range(1, len(addresses) + 1) if _turns(addresses, n))
        index = row if turn == len(addresses) else f"({row}) % {turn}"
        return f"arena + {self.table(name, addresses[:turn])}[{index}]{self.unit(addresses)}"

    def unit(self, addresses: Sequence[int]) -> str:
        return f" * {WORD}" if self.in_words(addresses) else ""

    def in_words(self, addresses: Sequence[int]) -> bool:
        return all(at % WORD == 0 for at in addresses)

    def table(self, name: str, addresses: Sequence[int]) -> str:
        """Write the table, unless it is there; return its name."""
        if name not in self._names:
            words = self.in_words(addresses)
            numbers = [at // WORD if words else at for at in addresses]
            kind, size = c_type(max(numbers))
            self.out.say(f"static const {kind} {name}[] = {{{', '.join(map(str, numbers))}}};")
            self.bytes += size * len(numbers)
            self._names.add(name)
        return name

    _names: set[str] = field(default_factory=set)


def c_type(most: int) -> tuple[str, int]:
    """Return the narrowest unsigned type that holds numbers up to `most`, and its bytes."""
    return ("uint8_t", 1) if most < 1 << 8 else ("uint16_t", 2) if most < 1 << 16 else ("uint32_t", 4)


def _turns(addresses: Sequence[int], turn: int) -> bool:
    return all(at == addresses[n % turn] for n, at in enumerate(addresses))
