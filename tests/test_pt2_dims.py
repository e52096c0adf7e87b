"""A torch program has the sizes of its example inputs: `--dims` is refused before torch is needed."""

import pytest

from onchip.base.errors import UsageError
from onchip.readers import ReadOptions, load


@pytest.mark.parametrize("model", ["net.pt2", "nets:small"])
def test_dims_of_a_torch_model_are_refused_by_name(model: str) -> None:
    with pytest.raises(UsageError, match="sizes of its example inputs, and no dimension words"):
        load(model, ReadOptions(dims="words=32"))
