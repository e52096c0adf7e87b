"""Co-run: several networks on several processing units that share one memory (HaX-CoNN)."""

from onchip._verbs import callable_as

callable_as(__name__)
