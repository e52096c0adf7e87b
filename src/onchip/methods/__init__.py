"""The one question of `onchip plan`: the best plan that a chip can run, or the plan of one method.

`answer` decides which planners run and which of their plans is given. Where tiles are allowed, operators run
fused where that moves less; else they run whole. On a chip with several memories tiles are planned for one of
them, whole operators over all, and the better plan is given (docs/answers.md).
"""

from onchip.methods.answer import Answer, Question, answer
from onchip.methods.options import MethodOptions, PaperOptions

__all__ = ["Answer", "MethodOptions", "PaperOptions", "Question", "answer"]
