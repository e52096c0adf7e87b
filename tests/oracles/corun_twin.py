"""Two chains on shared units by plain recursion over events: the twin of the compiled label search.

Nothing is pruned and nothing is kept: every choice at every event is followed to the end. A network is moving
to a unit, waiting for one or running; when it comes to the end of a group it takes any next unit, and where
it could begin, it may leave the unit to the other network's next group on it (`any_order`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from onchip.multi_dnn.chains import Chain

__all__ = ["ends"]

State = tuple[str, int, float]  # phase, place, what is left (work alone, or of the move)
Slow = tuple[Sequence[float], Sequence[float]]


def ends(
    first: Chain, second: Chain, slow: Slow, units: int, *, any_order: bool
) -> Iterator[tuple[float, float]]:
    """The ends of both chains under every schedule of the space (some more than once)."""
    chains = (first, second)
    columns = len(second.steps) * units

    def follow(
        now: float, states: tuple[State, State], done: tuple[float, ...]
    ) -> Iterator[tuple[float, ...]]:
        if all(phase == "done" for phase, _, _ in states):
            yield done
            return
        speed = [1.0, 1.0]
        if states[0][0] == states[1][0] == "run":
            at = states[0][1] * columns + states[1][1]
            speed = [1 / slow[0][at], 1 / slow[1][at]]
        until = [
            left / speed[n] if phase in ("run", "move") else inf for n, (phase, _, left) in enumerate(states)
        ]
        step = min(until)
        if step == inf:
            return  # they wait for each other
        for n in range(2):
            if until[n] > step + 1e-12:
                continue
            moved = [
                (phase, place, 0.0 if until[m] <= step + 1e-12 else max(0.0, left - step * speed[m]))
                if until[m] < inf
                else (phase, place, left)
                for m, (phase, place, left) in enumerate(states)
            ]
            yield from event(now + step, n, (moved[0], moved[1]), done)

    def event(
        now: float, n: int, states: tuple[State, State], done: tuple[float, ...]
    ) -> Iterator[tuple[float, ...]]:
        """Network n has ended its move or its group; then its next unit, then who takes which unit."""
        phase, place, _ = states[n]
        position, unit = divmod(place, units)
        if phase == "move":
            yield from settle(now, put(states, n, ("ready", place, 0.0)), done)
        elif position + 1 == len(chains[n].steps):
            ended = tuple(now if m == n else t for m, t in enumerate(done))
            yield from settle(now, put(states, n, ("done", place, 0.0)), ended, freed=unit)
        else:
            for v in range(units):
                to = (position + 1) * units + v
                if chains[n].work[to] == inf:
                    continue
                move = chains[n].move[place * units + v]
                state: State = ("move", to, move) if move else ("ready", to, 0.0)
                yield from settle(now, put(states, n, state), done, freed=unit)

    def settle(
        now: float, states: tuple[State, State], done: tuple[float, ...], freed: int | None = None
    ) -> Iterator[tuple[float, ...]]:
        """Every way to let those begin that can. Who waits may only begin when its unit is freed."""
        able = []
        for n, (phase, place, _) in enumerate(states):
            other, elsewhere, _ = states[1 - n]
            busy = other == "run" and elsewhere % units == place % units
            if not busy and (phase == "ready" or (phase == "wait" and freed == place % units)):
                able.append(n)
        clash = len(able) == 2 and states[0][1] % units == states[1][1] % units
        choices: list[tuple[int, ...]] = []
        if clash:
            choices = [(0,), (1,)]
        else:
            choices = [tuple(able)]
            if any_order:
                choices += [tuple(m for m in able if m != n) for n in able]
        for begin in choices:
            after = list(states)
            for n, (phase, place, left) in enumerate(states):
                if n in begin:
                    after[n] = ("run", place, chains[n].work[place])
                elif phase == "ready":
                    after[n] = ("wait", place, left)
            yield from follow(now, (after[0], after[1]), done)

    for a in range(units):
        for b in range(units):
            if first.work[a] < inf and second.work[b] < inf:
                for both in settle(0.0, (("ready", a, 0.0), ("ready", b, 0.0)), (0.0, 0.0)):
                    yield both[0], both[1]


def put(states: tuple[State, State], n: int, state: State) -> tuple[State, State]:
    return (state, states[1]) if n == 0 else (states[0], state)
