"""A plan as the user's result: a program that checks, runs, exports and shows itself."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from onchip.base.errors import OnchipError, one_line
from onchip.base.files import write_atomically
from onchip.plans import Plan as PlanProgram
from onchip.plans import Result, Timed, from_json, from_text, to_json, to_text, write_plan

if TYPE_CHECKING:
    from onchip.export.layout import Layout, Place
    from onchip.plans.differences import Difference
    from onchip.readers import Source
    from onchip.report.what_if import WhatIf
    from onchip.run import RunReport

__all__ = ["Plan"]


class Plan(PlanProgram):
    """A plan that can check, run and show itself. `plan()` and `read()` make it.

    >>> import onchip
    >>> plan = onchip.plan("zoo:squeezenet1_0", budget="MR")
    >>> plan.result.status, plan.check() == plan.result
    ('optimal', True)

    `notes` are sentences on how the plan was chosen; they are not in its file.
    """

    notes: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, program: PlanProgram) -> Plan:
        """Return the same plan with these verbs."""
        return cls(**{f.name: getattr(program, f.name) for f in fields(PlanProgram)})

    def noting(self, notes: tuple[str, ...]) -> Plan:
        """Return this plan with notes."""
        object.__setattr__(self, "notes", notes)
        return self

    def check(self) -> Result:
        """Prove the plan legal and return its figures, all recomputed; raises `IllegalPlan` if it is not."""
        from onchip.check import check

        return check(self)

    def run(
        self, model: Source | str | Path | None = None, *, seed: int = 0, checked: bool = True
    ) -> RunReport:
        """Execute the plan on `seed`'s weights and input, and compare every tensor with the whole network.

        `model` is the model's current path, if it has moved since it was planned.

        Raises `Mismatch` naming the tensor that differs, `IllegalPlan` when `checked` and it is illegal,
        `InputError` when the model is missing or changed.
        """
        from onchip.run import run

        return run(self, model, seed=seed, checked=checked)

    def report(self, path: str | Path | None = None, *, what_if: WhatIf | None = None) -> str:
        """Return the report as one self-contained HTML page; written to `path` when given.

        `what_if` adds the costs at other budgets: `onchip.replanning.what_if(plan)`.
        """
        from onchip.report import html

        page = html(self, what_if)
        if path is not None:
            write_atomically(Path(path), page)
        return page

    def export(self, to: str, path: str | Path | None = None, *, model: str | Path | None = None) -> bytes:
        """Return the plan in another program's format (`minimalloc`, `tflm`, `c`, `json`), checked first.

        It is written to `path` when given. `model` is the model's current path, for `tflm`, if it has moved.
        Raises `UsageError` when the format cannot express the plan.
        """
        from onchip.export import export

        written = export(self, to, model=model)
        if path is not None:
            write_atomically(Path(path), written)
        return written

    def places(self) -> dict[str, tuple[Place, ...]]:
        """Return where every tensor lies on chip: `tensor -> ((memory, address, first, end), ...)`, in steps.

        >>> import onchip
        >>> plan = onchip.plan("zoo:alexnet", budget="MR")
        >>> [(place.memory, place.first, place.end) for place in plan.places()["x"]]
        [('scratchpad', 0, 1)]

        Raises `IllegalPlan` for a plan that is not legal.
        """
        from onchip.export.layout import places_of

        return places_of(self)

    def layout(self) -> Layout:
        """Return the plan as tables: steps, residencies, copies, and what streams through tiles.

        Raises `IllegalPlan` for a plan that is not legal.
        """
        from onchip.export.layout import layout_of

        return layout_of(self, "a layout", memories=True, tiles=True)

    def times(self) -> tuple[Timed, ...] | None:
        """Return when each instruction begins and ends, in picoseconds; None where the chip lacks a rate."""
        from onchip.check import check, times_of

        check(self)
        return times_of(self)

    def differences(self, other: PlanProgram) -> tuple[Difference, ...]:
        """Return every difference of this plan and another one; none of the plan and itself."""
        from onchip.plans.differences import differences

        return differences(self, other)

    def save(self, path: str | Path) -> None:
        """Write the plan: JSON for a name ending in `.json`, the text form for any other."""
        write_plan(self, path)

    def to_json(self) -> str:
        """Return the JSON form."""
        return to_json(self)

    def to_text(self) -> str:
        """Return the text form."""
        return to_text(self)

    @classmethod
    def from_text(cls, text: str) -> Plan:
        """Return the plan in either written form."""
        return cls.of((from_json if text.lstrip().startswith("{") else from_text)(text))

    def __repr__(self) -> str:
        from onchip.report.grid import one_screen

        try:
            return one_screen(str(self))
        except OnchipError as problem:  # an illegal plan has no summary
            return one_line(f"{self.network.name} on {self.chip.name}: {problem}")

    def __str__(self) -> str:
        from onchip.report import summary
        from onchip.report.grid import printed

        return printed(summary(self), 100)

    def _repr_html_(self) -> str:
        from onchip.report import notebook

        return notebook(self)
