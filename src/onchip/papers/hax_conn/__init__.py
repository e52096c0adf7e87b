"""HaX-CoNN as published: its encoding for Z3, the enumeration of schedules, the fit of contention."""
