"""One network planned in several ways: rows side by side, and the baselines of the field."""
