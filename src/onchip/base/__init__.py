"""The foundation of all packages: errors, files, limits, units, processes and signals."""
