"""The one question of `onchip plan`: the best plan that a chip can run, or the plan of one method.

`answered` decides which planners run and which of their plans is given. Where tiles are allowed, operators
run fused where that moves less; else they run whole. On a chip with several memories tiles are planned for
one of them, whole operators over all, and the better plan is given.
"""

from typing import TYPE_CHECKING

from onchip.base.lazy import exports
from onchip.methods.options import MethodOptions, PaperOptions

if TYPE_CHECKING:
    from onchip.methods.answer import Answer, Question, answered
else:
    __getattr__, __dir__ = exports(__name__, answer="Answer Question answered")

__all__ = ["Answer", "MethodOptions", "PaperOptions", "Question", "answered"]
