"""One module per predicate and/or priority; none knows another."""
