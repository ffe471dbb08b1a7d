"""The scheduling module: presort, rounds, additions and removals, the plan. Pure: no files, no clock."""
