"""Made-up clusters and loads: the demo that is shipped, and generators for tests and benchmarks."""
