"""Say where the time of a workload goes: python scripts/profile_workload.py mixed/5000Nodes [PODS]."""

import cProfile
import pstats
import sys
from dataclasses import replace

from berth.scheduling import compiled
from berth.scheduling.warming import exercises
from berth.sim.benchmarks import cache_folder
from berth.sim.scheduling import default_profile
from berth.sim.workloads import chosen

N_RUNS = 10
N_LINES = 25


def main() -> None:
    (workload,) = chosen([sys.argv[1]])
    size = replace(workload.size, pods=int(sys.argv[2])) if len(sys.argv) > 2 else workload.size
    compiled.keep_in(str(cache_folder("kernels")))
    for group, exercise in exercises(default_profile()):
        group.warm_up(exercise)
    run = workload.prepare(size)
    profile = cProfile.Profile()
    for _ in range(N_RUNS):
        undo = profile.runcall(run)
        if undo is not None:
            undo()
    pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(N_LINES)


if __name__ == "__main__":
    main()
