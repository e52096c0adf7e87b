"""Co-run: several networks on several processing units that share one memory (HaX-CoNN)."""
