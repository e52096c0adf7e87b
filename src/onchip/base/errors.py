"""The exception tree.

    OnchipError
    ├── InputError          the input is wrong: file, node or key, and reason             (exit 2)
    │   ├── UsageError      an option or an argument                                      (exit 2)
    │   ├── ModelError      a network file: unreadable, cyclic, unknown operator, shapes  (exit 2)
    │   ├── ChipError       a chip file or a figure the chip does not state               (exit 2)
    │   ├── PlanFormatError a plan or schedule file that cannot be read                   (exit 2)
    │   └── ProfileError    a profile of layer groups, or a set of workloads              (exit 2)
    ├── MissingExtra        an optional dependency; the message is the install line       (exit 2)
    ├── MissingTool         a program that is not installed; the message is the line      (exit 2)
    ├── BuildFailed         firmware that the cross compiler refuses                      (exit 2)
    └── NegativeAnswer      the question was understood and the answer is no              (exit 1)
        ├── Infeasible      no plan exists within the budget: needs, has, because of      (exit 1)
        ├── NeedsTraffic    no plan without spills and reloads within the budget          (exit 1)
        ├── NoAddresses     none found that keep the pinned tensors on chip; not proved   (exit 1)
        ├── DoesNotFitBoard a program needs more RAM or flash than the board has          (exit 1)
        ├── EmulationFailed a program on the emulated core faulted, or got nowhere        (exit 1)
        │   └── TooLargeToEmulate  it fits its board, not the memories that are emulated  (exit 1)
        ├── IllegalPlan     the checker refused a plan: instruction and rule              (exit 1)
        ├── IllegalSchedule a schedule breaks a rule, or its figures are not its own      (exit 1)
        ├── WorkerLost      a process that ran a part of a schedule died or hung          (exit 1)
        └── Mismatch        an executed plan differed from the reference                  (exit 1)

Every message is one line that makes sense alone; the command line prints it as it is.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BuildFailed",
    "ChipError",
    "DoesNotFitBoard",
    "EmulationFailed",
    "IllegalPlan",
    "IllegalSchedule",
    "Infeasible",
    "InputError",
    "Mismatch",
    "MissingExtra",
    "MissingTool",
    "ModelError",
    "NeedsTraffic",
    "NegativeAnswer",
    "NoAddresses",
    "OnchipError",
    "PlanFormatError",
    "ProfileError",
    "TooLargeToEmulate",
    "UsageError",
    "WorkerLost",
]

AMONG = "; among: "
"""Before the plans that a refusal ranges over, at the end of its message."""

LINE = 2_000
"""The most characters of a message; a longer one keeps its beginning and end."""


def one_line(message: str) -> str:
    """Return a message as it is shown: one line of text, at most `LINE` characters.

    Names come from files and folders: a newline, a control character or a byte that is no text must not break
    "one line", and a name of thousands of characters must not bury the reason, which comes last.
    """
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
    return line if len(line) <= LINE else f"{line[: LINE // 2]} ... {line[-LINE // 2 + 5 :]}"


class OnchipError(Exception):
    """Every error that onchip raises on purpose. `exit_code` is that of the command line."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))

    def data(self) -> dict[str, Any]:
        """Return the error as `--json` prints it: its kind, its one line, the exit code, and its data."""
        more = {key: value for key, value in vars(self).items() if not key.startswith("_")}
        named = more.get("tensors")
        if named is not None:
            more["tensors"] = [{"name": name, "bytes": size} for name, size in named]
        kind = "".join(f"-{c.lower()}" if c.isupper() else c for c in type(self).__name__)[1:]
        return {"kind": kind, "message": str(self), "exit_code": self.exit_code, **more}


class InputError(OnchipError):
    """The input is wrong.

    `where` is the file (or option), `item` the node, tensor or key in it that is to blame, if one is.
    """

    def __init__(self, reason: str, *, where: str | None = None, item: str | None = None) -> None:
        self.where, self.item, self.reason = where, item, reason
        super().__init__(": ".join(part for part in (where, item, reason) if part))


class UsageError(InputError):
    """An option or an argument is wrong."""


class ModelError(InputError):
    """A network cannot be read."""


class ChipError(InputError):
    """A chip cannot be read, or does not state a figure that is needed."""


class PlanFormatError(InputError):
    """A plan file cannot be read."""


class ProfileError(InputError):
    """A profile, or a set of workloads to run together, makes no sense."""


class MissingExtra(OnchipError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, package: str) -> None:
        """Name the package, and the extra that brings it; without one it is a package by itself."""
        wanted = f"'onchip[{extra}]'" if extra else package
        super().__init__(f"{package} is not installed: pip install {wanted}")


class MissingTool(OnchipError):
    """A required program is not installed; `packages` are the Debian packages that provide it."""

    def __init__(self, program: str, packages: str) -> None:
        super().__init__(f"{program} is not installed: apt-get install {packages}")


class BuildFailed(OnchipError):
    """The compiler refused a program for a microcontroller; its first complaint is the message."""


class NegativeAnswer(OnchipError):
    """The question was understood; the answer is no."""

    exit_code = 1


class Infeasible(NegativeAnswer):
    """No plan exists within the budget.

    `needs` and `has` are bytes. `needs` is the least budget in which the whole network has a plan of the
    requested `space`; with `at_least` only a bound of it is known. `operators` are those that need it,
    `operator` the first of them, `tensors` those that this one needs at once, as (name, bytes). Without an
    operator, the network does not fit beside the tensors that must stay on chip. Not `proved` if it could be
    tiled in more ways than were tried. `memory` is the one of several that is too small, if one is, and
    `needs` and `has` are of it. `mr` is the least budget in which every operator runs whole, `mp` the least
    in which there may be a plan without spills and reloads; `would_work` a command that would work.
    """

    def __init__(
        self,
        *,
        needs: int,
        has: int,
        operator: str = "",
        tensors: tuple[tuple[str, int], ...],
        proved: bool = True,
        at_least: bool = False,
        operators: tuple[str, ...] = (),
        space: str = "",
        memory: str = "",
        mr: int | None = None,
        mp: int | None = None,
        would_work: str = "",
    ) -> None:
        self.needs, self.has, self.operator, self.tensors = needs, has, operator, tensors
        self.mr, self.mp, self.would_work = mr, mp, would_work
        self.proved, self.at_least, self.space, self.memory = proved, at_least, space, memory
        self.operators = operators or ((operator,) if operator else ())
        because = ", ".join(f"{name} ({size:,} B)" for name, size in tensors)
        who = f"operator {operator}" if operator else "the network beside what stays on chip"
        if len(self.operators) > 1:
            who += f" (like {len(self.operators) - 1} more)"
        least = "at least " if at_least else ""
        within = f"memory {memory}" if memory else "the budget"
        super().__init__(
            f"infeasible: {who} needs {least}{needs:,} bytes, {within} has {has:,}"
            f" ({least}{needs - has:,} missing), because of {because}"
            + ("" if proved else "; not every size of its boxes was tried")
            + ("" if mr is None else f"; whole, every operator runs within {mr:,} (MR)")
            + ("" if mp is None else f", without spills and reloads within {mp:,} at least (MP)")
            + (f"; this would work: {would_work}" if would_work else "")
            + (f"{AMONG}{space}" if space else "")
        )

    def but(self, **changes: Any) -> Infeasible:
        """Return the same error with some of its data changed."""
        mine = {key: value for key, value in vars(self).items() if not key.startswith("_")}
        if "operator" in changes:
            mine.pop("operators")
        return Infeasible(**{**mine, **changes})


class NeedsTraffic(NegativeAnswer):
    """No plan without spills and reloads was found within the budget.

    `needs` is the smallest budget, in bytes, for which a plan without them was found, `at_least` a bound that
    holds for every plan of the `space`.
    """

    def __init__(self, *, needs: int, at_least: int, has: int, space: str = "") -> None:
        self.needs, self.at_least, self.has, self.space = needs, at_least, has, space
        known = "" if needs == at_least else f" (and none needs fewer than {at_least:,})"
        super().__init__(
            f"infeasible: without spills and reloads the network needs {needs:,} bytes{known},"
            f" the budget has {has:,}" + (f"{AMONG}{space}" if space else "")
        )


class NoAddresses(NegativeAnswer):
    """No plan was found that keeps the required tensors on chip; that none exists is not proved.

    `bound` is a lower bound of any such plan's traffic, in bytes.
    """

    def __init__(self, budget: int, bound: int) -> None:
        self.has, self.bound = budget, bound
        super().__init__(
            f"no addresses were found within {budget:,} bytes for what is to stay on chip and the rest; more"
            " bytes or other addresses may help"
        )


class DoesNotFitBoard(NegativeAnswer):
    """A program needs more of a board's memories than they have.

    `short` lists for each of them (memory, bytes needed, bytes there).
    """

    def __init__(self, board: str, short: tuple[tuple[str, int, int], ...]) -> None:
        self.short = short
        lines = ", and ".join(
            f"{needs:,} bytes of {memory}, it has {has:,} ({needs - has:,} missing)"
            for memory, needs, has in short
        )
        super().__init__(f"does not fit {board}: the program needs {lines}")


class EmulationFailed(NegativeAnswer):
    """A program on the emulated core touched memory that is not its own, or did not end."""


class TooLargeToEmulate(EmulationFailed):
    """A program takes more RAM or flash than the emulated core has; `short` as in `DoesNotFitBoard`."""

    def __init__(self, short: tuple[tuple[str, int, int], ...]) -> None:
        self.short = short
        lines = ", and ".join(f"{needs:,} bytes of {memory}, not {has:,}" for memory, needs, has in short)
        super().__init__(f"cannot be run here: the emulated core would need {lines}")


class IllegalPlan(NegativeAnswer):
    """The checker refused a plan.

    `rule` is the name of the broken rule, `index` the instruction's position in the program (None if no
    single instruction is at fault).
    """

    def __init__(self, rule: str, reason: str, *, index: int | None = None, instruction: str = "") -> None:
        self.rule, self.reason, self.index, self.instruction = rule, reason, index, instruction
        at = "" if index is None else f"instruction {index} ({instruction}): "
        super().__init__(f"illegal plan: {at}{rule}: {reason}")


class IllegalSchedule(NegativeAnswer):
    """A schedule of several networks breaks a rule; `rule` is its name."""

    def __init__(self, rule: str, reason: str) -> None:
        self.rule, self.reason = rule, reason
        super().__init__(f"illegal schedule: {rule}: {reason}")


class WorkerLost(NegativeAnswer):
    """A process that ran a unit's part of a schedule died or hung; all others were ended."""


class Mismatch(NegativeAnswer):
    """An executed plan differed from the reference network."""
