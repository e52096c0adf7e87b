"""The command line."""


def main() -> None:
    """Placeholder until the verbs exist."""
    raise SystemExit("onchip: no verbs yet")
