"""What everything stands on: errors, files, limits, units, processes and signals."""
