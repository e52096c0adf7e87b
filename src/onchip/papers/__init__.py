"""Reproductions of papers' own methods: no command calls them; tests and benchmarks do."""
