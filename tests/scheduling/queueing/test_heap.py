import random

from berth.cluster.cluster import Cluster
from berth.scheduling.queueing import QueuedPod
from berth.scheduling.queueing.heap import PodHeap
from tests.scheduling.queueing.worlds import waiting


def test_pods_come_by_key_however_often_they_moved() -> None:
    cluster, drawn = Cluster(), random.Random(7)
    pods = [QueuedPod(waiting(cluster, str(i)), 0, i) for i in range(40)]
    heap = PodHeap(lambda queued: queued.order)
    inside: set[QueuedPod] = set()
    for _ in range(3000):
        pod = drawn.choice(pods)
        if pod in inside and drawn.random() < 0.3:
            heap.remove(pod)
            inside.remove(pod)
        else:
            pod.timestamp = drawn.randrange(10)
            heap.put(pod)
            inside.add(pod)
        assert len(heap) == len(inside)
        assert heap.first() is min(inside, key=lambda queued: queued.order, default=None)


def test_an_empty_heap_has_no_first() -> None:
    heap = PodHeap(lambda queued: queued.order)
    pod = QueuedPod(waiting(Cluster(), "a"), 0, 1)
    heap.put(pod)
    heap.remove(pod)
    assert heap.first() is None
