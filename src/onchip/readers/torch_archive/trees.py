"""The nesting of arguments and results: torch imports the types that such a text names."""

from __future__ import annotations

import msgspec

from onchip.readers.torch_archive.tensors import decoded
from onchip.readers.torch_archive.words import Senseless, shown

__all__ = ["flat", "leaves"]

_PLAIN = {
    "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict",
    "torch.fx.immutable_collections.immutable_list", "torch.fx.immutable_collections.immutable_dict",
}  # fmt: skip
LONGEST, DEEPEST = 1 << 20, 50


class _Tree(msgspec.Struct, frozen=True):
    type: str | None
    context: str | None
    children_spec: list[_Tree]


def leaves(text: str) -> int:
    """Return the number of values that the text nests; raises `Senseless` unless in lists and mappings."""
    if len(text) > LONGEST:
        raise Senseless(f"a nesting has more than {LONGEST:,} letters")
    form, tree = decoded(text.encode(), tuple[int, _Tree], "nesting of inputs and outputs")
    if form != 1:
        raise Senseless(f"a nesting is of form {form}, and only 1 is known")
    count, under = 0, [(tree, 0)]
    while under:
        tree, depth = under.pop()
        if depth > DEEPEST:
            raise Senseless(f"a nesting is more than {DEEPEST} deep")
        if tree.type is None:
            if tree.children_spec or tree.context is not None:
                raise Senseless("a nesting has a value with values in it")
            count += 1
        elif tree.type not in _PLAIN:
            raise Senseless(f"a nesting is of {shown(tree.type)}, and only of lists and mappings it is read")
        elif tree.type.endswith(("ict", "Dict")):
            decoded((tree.context or "").encode(), list[str | int], "keys of a mapping")
        elif tree.context not in (None, "null"):
            raise Senseless(f"a nesting has {shown(tree.context)} beside its values")
        under += [(child, depth + 1) for child in tree.children_spec]
    return count


def flat(inputs: int | None = None, outputs: int | None = None) -> str:
    """Return the text for that many values side by side, as arguments of a call or as its results."""
    leaf = '{"type": null, "context": null, "children_spec": []}'
    values = ", ".join([leaf] * (inputs if inputs is not None else outputs or 0))
    row = f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{values}]}}'
    if inputs is None:
        return f"[1, {row}]"
    none = '{"type": "builtins.dict", "context": "[]", "children_spec": []}'
    return f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{row}, {none}]}}]'
