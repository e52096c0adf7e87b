"""The C of a product in blocks of rows and lanes, from its operands or from a panel of one of them."""

from __future__ import annotations

from onchip.export.threads.operands import F32, NoBlocks, Operands, follows, rest_of

__all__ = ["LEAST_BLOCKS", "MOST_PANEL", "Products"]

LEAST_BLOCKS, MOST_PANEL = 3, 1024
"""Blocks of rows from which on a panel is made, and the most indices of a sum that it holds."""


class Products(Operands):
    """The statements that sum the products of a block into `a0`, `a1`, ... one index after the other."""

    least_rows = 1
    """The fewest rows of a step for which a panel is made."""
    packed = False
    """True where the factor with lanes is read from its panel."""

    def product(self) -> list[str]:
        """Return the statements that sum the products of a block into `a0`, `a1`, ..."""
        step, cut, chain = self.step, self.cut, self.chain
        sums = list(cut.sums)
        lines = []
        begin = "vec_all(0.0f)"
        if step.parts:
            if not step.accumulators:
                raise NoBlocks
            self.beside = self.places[step.accumulators]
        for r in range(self.height):
            start = begin
            if step.parts:
                start += " : " + self.lanes_from(self.beside, self.put_at(self.beside, r), "all")
                start = f"first ? {start}"
            lines.append(f"vec a{r} = {start};")
        x, w = chain.factors
        if not any(follows(self.use(name), self.shape.lanes) for name in (x, w)):
            raise NoBlocks
        if self.packed:
            return lines + self.from_panel() + self.partial()
        taps, before = self.taps()
        lines += before
        inner = sums[-1] if sums else -1
        for axis in sums[:-1]:
            lines.append(f"for (ix v{axis} = lo{axis}; v{axis} < hi{axis}; ++v{axis}) {{")
        from_ = {inner: f"lo{inner}"}
        names = (x, w)
        for number, name in enumerate(names):
            if inner >= 0:
                lines.append(f"const ix d{number} = {self.stride(name, inner)};")
            if self.steps_by_row(name) and not self.spread:
                lines += [f"ix e{number} = {self.stride(name, self.shape.rows)};", f"OPAQUE(e{number});"]
        heads: dict[tuple[int, str], int] = {}
        for tap in taps:
            for number, name in enumerate(names):
                where, _ = self.split(name, tap)
                key = number, str(where)
                if key in heads:
                    continue
                heads[key] = len(heads)
                for r in range(self.height if self.spread and self.steps_by_row(name) else 1):
                    at = self.at(name, self.of_row(r) | from_, where)
                    held = f"{tap.there} ? {at} : pad" if tap.there and number == 0 else at
                    lines.append(f"const unsigned char *p{heads[key]}_{r} = {held};")
                if not self.spread and self.steps_by_row(name):
                    for r in self.pointers(name)[1:]:
                        lines.append(
                            f"const unsigned char *p{heads[key]}_{r} = p{heads[key]}_0 + {r} * e{number};"
                        )
                        lines.append(f"OPAQUE(p{heads[key]}_{r});")
        rests: dict[tuple[int, int], list[str]] = {}
        for k, tap in enumerate(taps):
            for number, name in enumerate(names):
                if not self.rests(name):
                    continue
                # What is left of a ring is the same for all that is summed: its rows lie one behind another.
                where, more = self.split(name, tap)
                rows = self.of_rows(name, f"p{heads[number, str(where)]}_", f"e{number}")
                rests[number, k] = [f"left{number}_{k}_{r}" for r in range(len(rows))]
                for one, at in zip(rests[number, k], rows, strict=True):
                    left = rest_of(self.place(name), at + (f" + {more}" if more else ""))
                    lines.append(f"const ix {one} = {left};")
        if inner >= 0:
            lines.append(f"for (ix n = hi{inner} - lo{inner}; n > 0; --n) {{")
        for k, tap in enumerate(taps):
            lines.append(f"if ({tap.there}) {{" if tap.there else "{")
            some = []
            for number, name in enumerate(names):
                where, more = self.split(name, tap)
                rows = self.of_rows(name, f"p{heads[number, str(where)]}_", f"e{number}")
                loads = [
                    self.load(name, one + (f" + {more}" if more else ""), tap.lanes, rest)
                    for one, rest in zip(rows, rests.get((number, k), [""] * len(rows)), strict=True)
                ]
                if len(loads) == 1:
                    lines.append(f"const vec f{number} = {loads[0]};")
                    loads = [f"f{number}"] * self.height
                some.append(loads)
            lines += [f"a{r} += {one} * {two};" for r, (one, two) in enumerate(zip(*some, strict=True))]
            lines.append("}")
        if inner >= 0:
            for (number, _), n in heads.items():
                lines += [f"p{n}_{r} += d{number};" for r in self.pointers(names[number])]
        lines += ["}"] * len(sums)
        return lines + self.partial()

    def pointers(self, name: str) -> tuple[int, ...]:
        """Return the rows that have a pointer to a factor: every third, where all are equally far apart."""
        if not self.steps_by_row(name):
            return (0,)
        return tuple(range(0, self.height, 1 if self.spread else 3))

    def of_rows(self, name: str, pointer: str, apart: str) -> list[str]:
        """Return the C of a factor's address in every row, one where it is the same."""
        if not self.steps_by_row(name):
            return [f"{pointer}0"]
        if self.spread:
            return [f"{pointer}{r}" for r in range(self.height)]
        return [
            f"{pointer}{r // 3 * 3}" + (f" + {r % 3} * {apart}" if r % 3 else "") for r in range(self.height)
        ]

    def partial(self) -> list[str]:
        """Return the statements that leave sums where they go on, if they do."""
        if not self.step.parts:
            return []
        lines = ["if (!last) {"]
        for r in range(self.height):
            guard = f"if ({r} >= begin && {r} < end) " if self.shape.rows >= 0 else ""
            lines.append(guard + self.lanes_to(self.beside, self.put_at(self.beside, r), f"a{r}"))
        return [*lines, "return;", "}"]

    def packs(self) -> bool:
        """Return whether the factor that has lanes is laid out in a panel: all of the sum, for all lanes.

        That takes a pass over it, and is left out where few blocks of rows use it.
        """
        if self.shape.rows < 0 or not self.cut.sums:
            return False
        loaded = [name for name in self.chain.factors if follows(self.use(name), self.shape.lanes)]
        if len(loaded) != 1:
            return False
        # What has its lanes apart is turned for a single block, too: else each vector is gathered.
        self.least_rows = 1 if not self.contiguous(loaded[0]) else self.height * (LEAST_BLOCKS - 1) + 1
        if self.cut.axes[self.shape.rows] < self.least_rows:
            return False
        self.loaded, (self.other,) = loaded[0], [n for n in self.chain.factors if n != loaded[0]]
        taps, _ = self.taps()
        if len(taps) > 1:
            # The other factor's taps have to lie in one piece, from index to index of the last axis summed.
            use, place = self.use(self.other), self.place(self.other).place
            ends = [n for n in range(len(place.sides)) if n in taps[-1].of(self.other)]
            first = len(place.sides) - len(ends)
            if ends != list(range(first, len(place.sides))) or not first:
                return False
            if use.axes[first - 1] != self.cut.sums[-1] or place.pitch != 4:
                return False
        self.count = len(taps)
        for axis in self.cut.sums:
            self.count *= self.cut.axes[axis]
        return self.count <= MOST_PANEL

    def turns(self, name: str, inner: int) -> bool:
        """Return whether a factor has its lanes apart, and what is summed along an axis side by side."""
        return not self.contiguous(name) and self.stride(name, inner) == str(F32.itemsize)

    def pack(self) -> list[str]:
        """Return the statements that fill the panel of the present lanes."""
        sums, name = list(self.cut.sums), self.loaded
        taps, lines = self.taps()
        lines = ["{", "const struct lanes all = lanes_of(0, wide);", "(void)all;", *lines]
        lines.append("unsigned char *q = (unsigned char *)panel;")
        for axis in sums[:-1]:
            lines.append(f"for (ix v{axis} = lo{axis}; v{axis} < hi{axis}; ++v{axis}) {{")
        inner, heads = sums[-1], dict[str, int]()
        if len(taps) == 1 and self.turns(name, inner):
            where, more = self.split(name, taps[0])
            at = self.at(name, self.var | {inner: f"lo{inner}"}, where) + (f" + {more}" if more else "")
            apart = self.stride(name, self.shape.lanes)
            lines.append(f"vec_turn(q, {at}, {apart}, hi{inner} - lo{inner}, all);")
            lines.append(f"q += 4 * LANES * (hi{inner} - lo{inner});")
            return [*lines, *["}"] * len(sums)]
        for tap in taps:
            where, _ = self.split(name, tap)
            if str(where) not in heads:
                heads[str(where)] = len(heads)
                at = self.at(name, self.var | {inner: f"lo{inner}"}, where)
                held = f"{tap.there} ? {at} : pad" if tap.there else at
                lines.append(f"const unsigned char *x{heads[str(where)]} = {held};")
        lines += [f"const ix d = {self.stride(name, inner)};"]
        lines += [f"for (ix n = hi{inner} - lo{inner}; n > 0; --n) {{"]
        for tap in taps:
            where, more = self.split(name, tap)
            head = f"x{heads[str(where)]}"
            one = self.load(name, head + (f" + {more}" if more else ""), tap.lanes)
            lines.append(
                f"vec_store(q, {f'{tap.there} ? {one} : vec_all(0.0f)' if tap.there else one}, LANES);"
            )
            lines.append("q += 4 * LANES;")
        lines += [f"x{head} += d;" for head in heads.values()]
        return [*lines, *["}"] * len(sums), "}"]

    def from_panel(self) -> list[str]:
        """Return the statements that sum the products of a block, with the panel."""
        sums, name = list(self.cut.sums), self.other
        taps, _ = self.taps()
        lines = ["const unsigned char *q = (const unsigned char *)panel;"]
        for axis in sums[:-1]:
            lines.append(f"for (ix v{axis} = lo{axis}; v{axis} < hi{axis}; ++v{axis}) {{")
        inner = sums[-1]
        step = "4" if len(taps) > 1 else self.stride(name, inner)
        lines.append(f"const ix d = {step};")
        by_row = self.steps_by_row(name)
        begin = {inner: f"lo{inner}"}
        start = self.var | begin
        zero = dict.fromkeys(taps[0].of(name), "0")
        if self.spread and by_row:
            for r in range(self.height):
                lines.append(f"const unsigned char *p{r} = {self.at(name, self.of_row(r) | begin, zero)};")
        elif by_row:
            lines += [f"ix e = {self.stride(name, self.shape.rows)};", "OPAQUE(e);"]
            lines += [f"const unsigned char *p0 = {self.at(name, start, zero)};"]
            lines += ["const unsigned char *p3 = p0 + 3 * e, *p6 = p0 + 6 * e;", "OPAQUE(p3);", "OPAQUE(p6);"]
        else:
            lines += [f"const unsigned char *p0 = {self.at(name, start, zero)};"]
        at = self.of_rows(name, "p", "e")
        lines.append(f"for (ix n = (hi{inner} - lo{inner}) * {len(taps)}; n > 0; --n) {{")
        lines.append("const vec f = vec_whole(q);")
        lines.append("q += 4 * LANES;")
        lines += [f"a{r} += vec_one({at[r % len(at)]}) * f;" for r in range(self.height)]
        lines += [f"p{r} += d;" for r in self.pointers(name)]
        return [*lines, *["}"] * len(sums)]
