"""How fast a live scheduler is: Berth, kube-scheduler, and a loop that only posts, on one real control plane."""
