"""Run by `test_codec`: onchip with two edits of `plans/program.py` and of no other file."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

FIELD = (
    """the tensor's range back.\"\"\"\n\n    tensor: str\n""",
    """the tensor's range back.\"\"\"\n\n    tensor: str\n    after: tuple[str, ...] = ()\n""",
)
KIND = (
    "Instruction = Load |",
    "@dataclass(frozen=True, slots=True)\nclass Wait:\n    channel: int\n    until: str | None = None\n"
    "    speed: float = 0.0\n\n\n"
    "Instruction = Wait | Load |",
)


class Edited(SourceFileLoader):
    """The module with its source edited."""

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        for old, new in (FIELD, KIND):
            assert source.count(old) == 1, old
            source = source.replace(old, new)
        return compile(source, self.path, "exec")


class Finder(MetaPathFinder):
    """Finds `onchip.plans.program`, edited."""

    def find_spec(self, name: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "onchip.plans.program":
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        assert spec is not None
        assert spec.origin is not None
        spec.loader = Edited(name, spec.origin)
        return spec


def main() -> None:
    """Print what both forms say of the new field and the new kind, and what is refused."""
    from dataclasses import replace

    from onchip.base.errors import PlanFormatError
    from onchip.plans import Free, from_json, from_text, program, to_json, to_text
    from onchip.plans.lines import line_of, to_row
    from sample_plan import PLAN

    wait = program.Wait  # type: ignore[attr-defined]
    steps = (wait(3), wait(4, "in", -1.5), Free("x", ("y", "a b")), Free("x"))  # type: ignore[call-arg]
    plan = replace(PLAN, program=steps)
    assert from_json(to_json(plan)) == plan
    assert from_text(to_text(plan)) == plan
    for step in steps:
        print(to_row(step))
        print(line_of(step))
    for wrong in (wait(10**18), wait(3, speed=float("nan")), wait(3, "\ud800"), Free("x", ("\ud800",))):  # type: ignore[call-arg]
        for write in (to_json, to_text):
            try:
                write(replace(plan, program=(wrong,)))
            except PlanFormatError as refusal:
                print(refusal)


if __name__ == "__main__":
    sys.meta_path.insert(0, Finder())
    main()
