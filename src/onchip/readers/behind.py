"""Functions behind a product that also read something smaller: a mask, a bias that was computed, a scale.

A function with one computed operand merges into the operator that makes it. One that adds a computed mask to
scores reads two values; the mask is smaller than the scores, and the product reads it as it is made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection

from onchip.base.allowance import spend
from onchip.readers.drafts import Draft
from onchip.readers.places import Places

__all__ = ["PRODUCTS", "behind_products"]

PRODUCTS = frozenset({"Einsum", "Gemm", "MatMul"})


def behind_products(
    drafts: list[Draft],
    places: Places,
    elements: Callable[[str], int],
    keep: Collection[str],
) -> list[Draft]:
    """Merge products into the functions that alone read them; return the operators that are left."""
    makers = {name: draft for draft in drafts for name in draft.outputs}
    readers: dict[str, int] = {}
    for draft in drafts:
        for name in draft.inputs:
            readers[places.of[name].root] = readers.get(places.of[name].root, 0) + 1
    gone: set[int] = set()
    for draft in drafts:
        spend(f"operator {draft.name}")
        made = draft.outputs[0]
        if not draft.elementwise or len(draft.inputs) < 2:
            continue
        same = [name for name in draft.inputs if elements(name) == elements(made)]
        if len(same) != 1 or any(elements(name) > elements(made) for name in draft.inputs):
            continue
        [name] = same
        product = makers.get(name)
        if product is None or name in keep or readers[name] != 1 or len(product.outputs) != 1:
            continue
        if not any(op in PRODUCTS for op in product.types) or _reads(product, draft, places):
            continue
        gone.add(id(product))
        others = [other for other in draft.inputs if other != name]
        draft.name, draft.geometry, draft.elementwise = product.name, None, False
        draft.types = deque([*product.types, *draft.types])
        draft.nodes = product.nodes | draft.nodes
        draft.weights = product.weights | draft.weights
        draft.inputs = dict.fromkeys([*product.inputs, *others])
    return [draft for draft in drafts if id(draft) not in gone]


def _reads(product: Draft, draft: Draft, places: Places) -> bool:
    """Return whether a product and the function behind it read parts of one tensor: they need other parts."""
    mine = {places.of[name].root for name in product.inputs}
    return any(places.of[name].root in mine for name in draft.inputs)
