"""The operations that a Cortex-M does in one instruction, with their types and their results.

`dsp.h.txt` holds each of them in C, once with the instruction and once without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onchip.microcontroller.kernel_language.ir import Call, Expr, Type, as_expr

__all__ = ["INTRINSICS", "Intrinsic", "call", "signed"]


def signed(value: int) -> int:
    """Return the lowest 32 bits as a signed integer."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def _signed_wide(value: int) -> int:
    """Return the lowest 64 bits as a signed integer."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _half(value: int, upper: bool) -> int:
    value = (value >> 16 if upper else value) & 0xFFFF
    return value - (1 << 16) if value & 0x8000 else value


def _byte(value: int, index: int) -> int:
    value = (value >> (8 * index)) & 0xFF
    return value - 256 if value & 0x80 else value


def _pair(low: int, high: int) -> int:
    return signed((low & 0xFFFF) | (high & 0xFFFF) << 16)


def _widened(word: int, odd: int, plus: int = 0) -> int:
    return _pair(_byte(word, odd) + _half(plus, False), _byte(word, odd + 2) + _half(plus, True))


def _dot(a: int, b: int, plus: int) -> int:
    return signed(_half(a, False) * _half(b, False) + _half(a, True) * _half(b, True) + plus)


def _high(a: int, b: int) -> int:
    return signed((a * b + (1 << 31)) >> 32)


def _doubled_high(a: int, b: int) -> int:
    return min((a * b + (1 << 30)) >> 31, (1 << 31) - 1)


def _divided(x: int, exponent: int) -> int:
    below = (1 << exponent) - 1
    return (x >> exponent) + int((x & below) > (below >> 1) + int(x < 0))


def _scaled(x: int, multiplier: int, shift: int) -> int:
    return _divided(_doubled_high(signed(x << max(shift, 0)), multiplier), max(-shift, 0))


def _clipped(value: int) -> int:
    return max(-128, min(127, value))


def _narrowed(x: int, multiplier: int, shift: int, offset: int) -> int:
    t = _high(signed(x << 1), multiplier)
    return _clipped((signed((signed(t + (t >> 31)) >> shift) + offset)) >> 1)


def _narrowed_level(x: int, multiplier: int, shift: int, offset: int) -> int:
    t = _high(signed(x << 1), multiplier)
    return _clipped(signed((signed((t >> 31) + (t << 1)) >> shift) + offset) >> 1)


def _lane(vector: int, i: int) -> int:
    return signed(vector >> (32 * i))


def _lanes(*values: int) -> int:
    return sum((v & 0xFFFFFFFF) << (32 * i) for i, v in enumerate(values))


def _by_lane(compute: Callable[..., int]) -> Callable[..., int]:
    """Return the function that computes each of four lanes."""
    return lambda *vectors: _lanes(*(compute(*(_lane(v, i) for v in vectors)) for i in range(4)))


def _halves(clamp: Callable[[int], int], even: int, odd: int, plus: int) -> int:
    """Return eight sums, of which two vectors hold those of even and odd number, as bytes in halves."""
    each = [clamp(_lane((even, odd)[c % 2], c // 2) + plus) for c in range(8)]
    return sum((v & 0xFFFF) << (16 * c) for c, v in enumerate(each))


def _word_of(compute: Callable[[int, int], int], a: int, b: int) -> int:
    """Return the word of what is computed of each of four bytes."""
    return signed(sum((compute(_byte(a, i), _byte(b, i)) & 0xFF) << (8 * i) for i in range(4)))


def _averaged(x: int, half: int, factor: int) -> int:
    y = ((abs(x) + half) * factor) >> 30
    return -y if x < 0 else y


def _repeated(value: int, bits: int) -> int:
    return sum((value & ((1 << bits) - 1)) << (bits * i) for i in range(128 // bits))


def _halves_of(vector: int, odd: int) -> int:
    """Return the halves of even or odd number as four integers."""
    return _lanes(*(_half(vector >> (32 * i), bool(odd)) for i in range(4)))


def _add8(a: int, b: int) -> int:
    return sum((((a >> (16 * i)) + (b >> (16 * i))) & 0xFFFF) << (16 * i) for i in range(8))


def _numbers(vector: int, odd: int) -> tuple[int, ...]:
    """Return the four numbers of 16 bits in even or odd places."""
    return tuple(_half(vector >> (32 * i), bool(odd)) for i in range(4))


def _saturated16(v: int) -> int:
    return max(-(1 << 15), min((1 << 15) - 1, v))


def _numbers8(even: int, odd: int) -> int:
    """Return eight numbers of 16 bits, saturated, of the lanes for even and for odd places."""
    pairs = (_pair(_saturated16(_lane(even, i)), _saturated16(_lane(odd, i))) for i in range(4))
    return _lanes(*pairs)


def _up(odd: int, bits: int) -> Callable[[int], int]:
    return lambda v: _lanes(*(x << bits for x in _numbers(v, odd)))


def _products(odd: int) -> Callable[[int, int], int]:
    return lambda a, b: _lanes(*(x * y for x, y in zip(_numbers(a, odd), _numbers(b, odd), strict=True)))


def _by_byte(compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """Return the function that computes each of sixteen bytes."""
    return lambda a, b: sum((compute(_byte(a, i), _byte(b, i)) & 0xFF) << (8 * i) for i in range(16))


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """An intrinsic: the types of its arguments and result, its computation, and its description."""

    takes: tuple[Type, ...]
    gives: Type
    compute: Callable[..., int]
    says: str


_I, _W, _P = Type.INT, Type.WORD, Type.PAIR
_V, _L, _H, _D = Type.VECTOR, Type.LANES, Type.HALVES, Type.WIDE

INTRINSICS: dict[str, Intrinsic] = {
    "widen_even": Intrinsic((_W,), _P, lambda w: _widened(w, 0), "bytes 0 and 2 (SXTB16)"),
    "widen_odd": Intrinsic((_W,), _P, lambda w: _widened(w, 1), "bytes 1 and 3 (SXTB16, ROR 8)"),
    "widen_even_plus": Intrinsic(
        (_P, _W), _P, lambda p, w: _widened(w, 0, p), "bytes 0 and 2, each plus a half (SXTAB16)"
    ),
    "widen_odd_plus": Intrinsic(
        (_P, _W), _P, lambda p, w: _widened(w, 1, p), "bytes 1 and 3, each plus a half (SXTAB16, ROR 8)"
    ),
    "dot2": Intrinsic((_P, _P, _I), _I, _dot, "both products of halves, and a sum (SMLAD)"),
    "mla_low": Intrinsic(
        (_P, _P, _I),
        _I,
        lambda a, b, s: signed(_half(a, False) * _half(b, False) + s),
        "the product of the lower halves, and a sum (SMLABB)",
    ),
    "mla_high": Intrinsic(
        (_P, _P, _I),
        _I,
        lambda a, b, s: signed(_half(a, True) * _half(b, True) + s),
        "the product of the upper halves, and a sum (SMLATT)",
    ),
    "low_half": Intrinsic((_P,), _I, lambda p: _half(p, False), "the lower half (SXTH)"),
    "high_half": Intrinsic((_P,), _I, lambda p: _half(p, True), "the upper half (ASR)"),
    "most_bytes": Intrinsic(
        (_W, _W), _W, lambda a, b: _word_of(max, a, b), "the greater of each of four bytes (SSUB8, SEL)"
    ),
    "least_bytes": Intrinsic(
        (_W, _W), _W, lambda a, b: _word_of(min, a, b), "the lesser of each of four bytes (SSUB8, SEL)"
    ),
    "four_bytes": Intrinsic(
        (_I,), _W, lambda v: signed((v & 0xFF) * 0x01010101), "the lowest byte in all four (MUL)"
    ),
    "byte0": Intrinsic((_W,), _I, lambda w: _byte(w, 0), "byte 0 (SXTB)"),
    "byte1": Intrinsic((_W,), _I, lambda w: _byte(w, 1), "byte 1"),
    "byte2": Intrinsic((_W,), _I, lambda w: _byte(w, 2), "byte 2"),
    "byte3": Intrinsic((_W,), _I, lambda w: _byte(w, 3), "byte 3 (ASR)"),
    "mla": Intrinsic(
        (_I, _I, _I), _I, lambda a, b, s: signed(a * b + s), "a product, and a sum that wraps (MLA)"
    ),
    "mla_in_turn": Intrinsic(
        (_I, _I, _I), _I, lambda a, b, s: signed(a * b + s), "the same; compilers do not reorder it"
    ),
    "pack_low": Intrinsic(
        (_P, _P), _P, lambda a, b: _pair(_half(a, False), _half(b, False)), "two lower halves (PKHBT)"
    ),
    "pack_high": Intrinsic(
        (_P, _P), _P, lambda a, b: _pair(_half(a, True), _half(b, True)), "two upper halves (PKHTB)"
    ),
    "four": Intrinsic((_I,), _L, lambda v: _lanes(v, v, v, v), "a value in four lanes (VDUP)"),
    "add4": Intrinsic((_L, _L), _L, _by_lane(lambda a, b: signed(a + b)), "four sums (VADD)"),
    "most4": Intrinsic((_L, _L), _L, _by_lane(max), "the greater of each (VMAX)"),
    "least4": Intrinsic((_L, _L), _L, _by_lane(min), "the lesser of each (VMIN)"),
    "minus4": Intrinsic((_L, _L), _L, _by_lane(lambda a, b: signed(a - b)), "four differences (VSUB)"),
    "mul4": Intrinsic((_L, _L), _L, _by_lane(lambda a, b: signed(a * b)), "four products (VMUL)"),
    "times4": Intrinsic(
        (_L, _L, _I),
        _L,
        lambda a, b, v: _by_lane(lambda x, y: signed(x * y + v))(a, b),
        "four products, plus a number (VMLAS)",
    ),
    "scaled_flat4": Intrinsic(
        (_L, _I),
        _L,
        lambda a, m: _by_lane(lambda x: _scaled(x, m, 0))(a),
        "`scaled` by one factor without a shift (VQRDMULH)",
    ),
    "scaled_right4": Intrinsic(
        (_L, _I, _I),
        _L,
        lambda a, m, shift: _by_lane(lambda x: _scaled(x, m, shift))(a),
        "`scaled` by one factor with a shift to the right (VQRDMULH, VRSHL)",
    ),
    "scaled_left4": Intrinsic(
        (_L, _I, _I),
        _L,
        lambda a, m, shift: _by_lane(lambda x: _scaled(x, m, shift))(a),
        "`scaled` by one factor with a shift to the left (VSHL, VQRDMULH)",
    ),
    "averaged4": Intrinsic(
        (_L, _I, _I),
        _L,
        lambda a, half, factor: _by_lane(lambda x: _averaged(x, half, factor))(a),
        "sums below 2**15 divided by a count, halves away from zero (VQDMULH); see kernels/pools_vector.py",
    ),
    "even_halves": Intrinsic(
        (_H,), _L, lambda a: _halves_of(a, 0), "halves of even number, widened (VMOVLB)"
    ),
    "odd_halves": Intrinsic((_H,), _L, lambda a: _halves_of(a, 1), "halves of odd number, widened (VMOVLT)"),
    "add8": Intrinsic((_H, _H), _H, _add8, "eight sums of sixteen bits (VADD)"),
    "eight": Intrinsic((_I,), _H, lambda v: _repeated(v, 16), "a value in eight halves (VDUP)"),
    "sixteen": Intrinsic((_I,), _V, lambda v: _repeated(v, 8), "a value in sixteen bytes (VDUP)"),
    "most16": Intrinsic((_V, _V), _V, _by_byte(max), "the greater of each of sixteen bytes (VMAX)"),
    "least16": Intrinsic((_V, _V), _V, _by_byte(min), "the lesser of each of sixteen bytes (VMIN)"),
    "plus4": Intrinsic(
        (_L, _I), _L, lambda a, v: _by_lane(lambda x: signed(x + v))(a), "a sum in each (VADD)"
    ),
    "evens": Intrinsic(
        (_I, _I), _L, lambda a, b: _lanes(a, 0, b, 0), "lanes 0 and 2; nothing of use in the others (VMOV)"
    ),
    "with_odds": Intrinsic(
        (_L, _I, _I), _L, lambda v, a, b: _lanes(_lane(v, 0), a, _lane(v, 2), b), "lanes 1 and 3 set (VMOV)"
    ),
    "scaled_short4": Intrinsic(
        (_L, _L, _L), _L, _by_lane(_scaled), "`scaled` for shifts to the right (VQRDMULH, VRSHL)"
    ),
    "scaled_level4": Intrinsic(
        (_L, _L, _L), _L, _by_lane(_scaled), "the same for shifts that may be 0 (VQRDMULH, VRSHL)"
    ),
    "scaled_long4": Intrinsic((_L, _L, _L), _L, _by_lane(_scaled), "`scaled` in four lanes, any shift"),
    "bytes4": Intrinsic(
        (_L,), _L, _by_lane(_clipped), "clamped to int8 in the lowest byte of each lane (VQMOVN)"
    ),
    "bytes8": Intrinsic(
        (_L, _L, _I),
        _H,
        lambda even, odd, v: _halves(_clipped, even, odd, v),
        "sums of eight channels, even and odd, plus a number, clamped to int8 in the lowest bytes (VQMOVN)",
    ),
    "clamped8": Intrinsic(
        (_L, _L, _I, _I, _I),
        _H,
        lambda even, odd, v, low, high: _halves(lambda y: max(low, min(high, y)), even, odd, v),
        "the same, clamped to two numbers (VMAX, VMIN)",
    ),
    "broadcast": Intrinsic((_I,), _P, lambda v: _pair(v, v), "a value in both halves (PKHBT)"),
    "high_product": Intrinsic((_I, _I), _I, _high, "a * b / 2**32, rounded (SMMULR)"),
    "narrowed": Intrinsic(
        (_I, _I, _I, _I),
        _I,
        _narrowed,
        "a sum below 2**30, scaled, moved and clamped to int8 (SMMULR, SSAT); see kernels/scale.py",
    ),
    "narrowed_level": Intrinsic(
        (_I, _I, _I, _I), _I, _narrowed_level, "the same for a shift that may be 0; see kernels/scale.py"
    ),
    "high_product_plus": Intrinsic(
        (_I, _I, _I), _I, lambda a, b, v: signed(_high(a, b) + v), "the same, plus a number (SMMLAR)"
    ),
    "high_floor_plus": Intrinsic(
        (_I, _I, _I),
        _I,
        lambda a, b, v: signed(((a * b) >> 32) + v),
        "a * b / 2**32, rounded down, plus a number (SMMLA)",
    ),
    "half_floor_plus": Intrinsic(
        (_I, _I, _I),
        _I,
        lambda a, b, v: signed(((a * (b & 0x7FFF0000)) >> 32) + v),
        "the same where the lower half of b is 0, and b above it",
    ),
    "number_times": Intrinsic(
        (_I, _I, _I),
        _I,
        lambda x, m, v: signed(((x * m + (1 << 15)) >> 16) + v),
        "a number of 16 bits times multiplier / 2**16, rounded, plus a number (SMMLAR)",
    ),
    "number_floor": Intrinsic(
        (_I, _I, _I),
        _I,
        lambda x, m, v: signed(((x * m) >> 16) + v),
        "a number of 16 bits times multiplier / 2**16, rounded down, plus a number (SMMLA)",
    ),
    "doubled_product": Intrinsic(
        (_I, _I), _I, lambda x, m: (x * m + (1 << 30)) >> 31, "x * m / 2**31, rounded, |x| at most 2**30"
    ),
    "evens_up14": Intrinsic((_V,), _L, _up(0, 14), "numbers of 16 bits in even places, 14 bits up (VSHLLB)"),
    "odds_up14": Intrinsic((_V,), _L, _up(1, 14), "those in odd places, 14 bits up (VSHLLT)"),
    "evens_up15": Intrinsic((_V,), _L, _up(0, 15), "those in even places, 15 bits up (VSHLLB)"),
    "odds_up15": Intrinsic((_V,), _L, _up(1, 15), "those in odd places, 15 bits up (VSHLLT)"),
    "even_products": Intrinsic(
        (_V, _V), _L, _products(0), "products of numbers of 16 bits in even places (VMULLB)"
    ),
    "odd_products": Intrinsic((_V, _V), _L, _products(1), "those of numbers in odd places (VMULLT)"),
    "dot8": Intrinsic(
        (_V, _H, _I),
        _I,
        lambda v, w, s: signed(
            s + sum(_half(v >> (16 * i), False) * _half(w >> (16 * i), False) for i in range(8))
        ),
        "the products of eight numbers of 16 bits, and a sum that wraps (VMLADAVA)",
    ),
    "eight_numbers": Intrinsic(
        (_I,), _V, lambda v: _repeated(v, 16), "a number of 16 bits in eight places (VDUP)"
    ),
    "numbers8": Intrinsic(
        (_L, _L), _V, _numbers8, "eight numbers of 16 bits, saturated, of even and odd places (VQMOVN)"
    ),
    "saturate16": Intrinsic((_I,), _I, _saturated16, "clamped to int16 (SSAT)"),
    "saturate": Intrinsic((_I,), _I, _clipped, "clamped to int8 (SSAT)"),
    "doubled_high": Intrinsic((_I, _I), _I, _doubled_high, "a * b / 2**31, rounded, saturated"),
    "divide_by_power": Intrinsic((_I, _I), _I, _divided, "x / 2**e, halves away from zero"),
    "scaled": Intrinsic((_I, _I, _I), _I, _scaled, "x * multiplier * 2**(shift - 31), rounded twice"),
    "scaled_down": Intrinsic(
        (_I, _I, _I),
        _I,
        lambda x, m, right: _divided(_high(signed(x << 1), m), right),
        "x * multiplier * 2**(-31 - right), rounded twice, for |x| below 2**30",
    ),
    "wide_of": Intrinsic(
        (_I, _I),
        _D,
        lambda low, high: (high << 32) | (low & 0xFFFFFFFF),
        "64 bits of two words, the lower first",
    ),
    "mla_wide": Intrinsic(
        (_I, _I, _D), _D, lambda a, b, s: _signed_wide(a * b + s), "a product, and a sum of 64 bits (SMLAL)"
    ),
    "scaled_wide": Intrinsic(
        (_D, _I, _I),
        _I,
        lambda x, m, right: signed((x * m + (1 << (right - 1))) >> right),
        "a sum below 2**47 times a multiplier of 15 bits * 2**-right, rounded once",
    ),
    "leading_zeros": Intrinsic(
        (_I,), _I, lambda v: 32 - (v & 0xFFFFFFFF).bit_length(), "how many bits above the first 1 (CLZ)"
    ),
}


def call(name: str, *arguments: Expr | int) -> Expr:
    """Return an intrinsic applied to arguments."""
    return Call(name, tuple(as_expr(a) for a in arguments), INTRINSICS[name].gives)
