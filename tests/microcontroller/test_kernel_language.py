"""The kernel language: what is said becomes a checked function, C that reads well, and the same bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.microcontroller.kernel_language import (
    Fault,
    Kernel,
    KernelError,
    Kind,
    Pointer,
    Ram,
    Type,
    c_prelude,
    c_source,
    run,
)
from onchip.microcontroller.kernel_language.intrinsics import INTRINSICS, call
from onchip.microcontroller.kernel_language.ir import Assign, Const, Declare, Function, Store, Var

WORDS = st.integers(-(1 << 31), (1 << 31) - 1)


def doubled() -> Function:
    k = Kernel("doubled", "Each byte of a line, doubled.")
    source, target, count = k.input("source"), k.output("target"), k.number("count")
    for i in k.loop(0, count, name="i"):
        byte = k.RAMLoad(source, i, Kind.BYTE, name="byte")
        k.RAMStore(target, i, k.saturate(byte * 2))
    k.RAMFree(source, count)
    return k.finish()


def test_a_loop_is_traced_once_and_printed_as_a_loop() -> None:
    assert c_source(doubled()).splitlines() == [
        "/* Each byte of a line, doubled. */",
        "void doubled(const int8_t *source, int8_t *target, int32_t count)",
        "{",
        "    for (int32_t i = 0; i < count; ++i) {",
        "        const int32_t byte = source[i];",
        "        target[i] = (int8_t)saturate(byte * 2);",
        "    }",
        "    /* RAMFree: count bytes at source */",
        "}",
    ]


def test_the_interpreter_runs_what_was_said() -> None:
    ram = Ram(8)
    ram.put(Pointer("a", 0), bytes([1, 255, 100, 0]))
    run(doubled(), ram, {"source": Pointer("a", 0), "target": Pointer("b", 4), "count": 4})
    assert list(ram.get(Pointer("b", 4), 4)) == [2, 254, 127, 0]


def test_freed_bytes_may_not_be_read_again() -> None:
    ram = Ram(8)
    ram.put(Pointer("a", 0), bytes(4))
    arguments = {"source": Pointer("a", 0), "target": Pointer("b", 4), "count": 4}
    run(doubled(), ram, arguments)
    with pytest.raises(Fault, match="freed"):
        run(doubled(), ram, arguments)


@pytest.mark.parametrize(("at", "why"), [(6, "outside"), (-1, "outside")])
def test_no_byte_outside_of_ram_is_touched(at: int, why: str) -> None:
    ram = Ram(8)
    ram.put(Pointer("a", 0), bytes(4))
    with pytest.raises(Fault, match=why):
        run(doubled(), ram, {"source": Pointer("a", 0), "target": Pointer("b", at), "count": 4})


def test_constants_fold_and_loops_of_one_turn_vanish() -> None:
    k = Kernel("k")
    out = k.output("out")
    for i in k.loop(2, 3):
        k.RAMStore(out, (i + 1) * 4 - 0, 7)
    with k.when(Const(3) > 4):
        k.RAMStore(out, 0, 1)
    assert k.finish().body == (Store(Kind.BYTE, out, Const(12), Const(7)),)


def test_a_branch_has_another_side() -> None:
    k = Kernel("larger_first")
    out, a = k.output("out"), k.number("a")
    with k.when(a > 3):
        k.RAMStore(out, 0, a)
    with k.otherwise():
        k.RAMStore(out, 0, 3)
    function = k.finish()
    for value, expected in ((9, 9), (2, 3)):
        ram = Ram(1)
        run(function, ram, {"out": Pointer("out", 0), "a": value})
        assert ram.bytes[0] == expected
    assert "} else {" in c_source(function)


def test_names_are_made_fit_for_c() -> None:
    k = Kernel("conv*/ int main(){}", "A comment that */ ends early")
    out, first = k.output("out"), k.number("1st")
    k.RAMStore(out, 0, k.let("for", k.let("while", 1) + first))
    text = c_source(k.finish())
    assert "void conv___int_main____(int8_t *out, int32_t k_1st)" in text
    assert "const int32_t k_for = k_while + k_1st;" in text
    assert "A comment that *_/ ends early" in text


def test_names_may_come_back_in_another_scope() -> None:
    k = Kernel("k")
    out = k.output("out")
    for _ in k.loop(0, 2):
        k.RAMStore(out, 0, k.let("v", 1))
    for _ in k.loop(0, 2):
        k.RAMStore(out, 0, k.let("v", 2))
    assert c_source(k.finish()).count("const int32_t v = ") == 2


def test_names_that_nobody_uses_are_left_out() -> None:
    k = Kernel("k")
    out = k.output("out")
    unused = k.let("unused", k.let("only_for_unused", 1) + 1)
    total = k.RegAlloc("total", 0)
    for i in k.loop(0, 4):
        k.set(total, total + i)
        k.let("also_unused", unused + i)
    k.RAMStore(out, 0, total)
    assert "unused" not in c_source(k.finish())


def bad(says: str) -> Function:
    """A kernel that makes no sense, built past the builder."""
    out, a, flash = Var("out", Type.OUTPUT), Var("a", Type.INT), Var("flash", Type.FLASH)
    bodies = {
        "is not known": (Declare(Var("b", Type.INT), Var("nowhere", Type.INT)),),
        "is declared twice": (Declare(a, Const(1)),),
        "is no register": (Assign(a, Const(1)),),
        "takes OUTPUT": (Store(Kind.BYTE, flash, Const(0), a),),
        "is INT, not PAIR": (Declare(Var("b", Type.PAIR), Var("a", Type.PAIR)),),
        "there is no intrinsic": (
            Declare(Var("b", Type.INT), type(call("saturate", 1))("no", (), Type.INT)),
        ),
        "not \\(INT\\)": (Declare(Var("b", Type.PAIR), call("widen_even", a)),),
        "is no name in C": (Declare(Var("a b", Type.INT), a),),
        "does not fit": (Declare(Var("b", Type.INT), Const(1 << 40)),),
    }
    return Function("bad", (out, a, flash), bodies[says])


@pytest.mark.parametrize(
    "says",
    [
        "is not known",
        "is declared twice",
        "is no register",
        "takes OUTPUT",
        "is INT, not PAIR",
        "there is no intrinsic",
        "not \\(INT\\)",
        "is no name in C",
        "does not fit",
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(says: str) -> None:
    from onchip.microcontroller.kernel_language import validate

    with pytest.raises(KernelError, match=f"kernel bad: .*{says}"):
        validate(bad(says))


@given(a=WORDS, b=WORDS, c=WORDS)
def test_pairs_compute_as_their_halves(a: int, b: int, c: int) -> None:
    def halves(v: int) -> tuple[int, int]:
        low, high = v & 0xFFFF, (v >> 16) & 0xFFFF
        return low - (low >> 15 << 16), high - (high >> 15 << 16)

    (a0, a1), (b0, b1) = halves(a), halves(b)
    assert (INTRINSICS["dot2"].compute(a, b, c) - (a0 * b0 + a1 * b1 + c)) % (1 << 32) == 0
    assert halves(INTRINSICS["pack_low"].compute(a, b)) == (a0, b0)
    assert halves(INTRINSICS["pack_high"].compute(a, b)) == (a1, b1)
    each = [(a >> 8 * i & 0xFF) - (a >> 8 * i & 0x80) * 2 for i in range(4)]
    assert halves(INTRINSICS["widen_even"].compute(a)) == (each[0], each[2])
    assert halves(INTRINSICS["widen_odd"].compute(a)) == (each[1], each[3])


def test_every_intrinsic_has_its_c() -> None:
    for name in INTRINSICS:
        assert f" {name}(" in c_prelude() or f"({name}," in c_prelude()
