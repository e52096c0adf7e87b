"""What reproduces a paper's own method and nothing else: no command calls it; tests and benchmarks do."""
