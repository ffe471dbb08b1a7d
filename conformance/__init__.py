"""The proof that Berth answers as kube-scheduler does: oracles, cases, comparison."""
