"""What is wrong with a pod before any node is looked at (1.10 to 1.17)."""

from berth.cluster.cluster import Cluster, Incoming


def refuse_claims(pod: Incoming, cluster: Cluster) -> str | None:
    """Return the error of the first claim that is missing or being deleted, None if all are well.

    Upstream's ``podPassesBasicChecks``: it comes before all predicates, and its text is what users see.
    """
    for name in pod.info.claims:
        claim = cluster.objects.persistent_volume_claims.get(pod.namespace, name)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
    return None
