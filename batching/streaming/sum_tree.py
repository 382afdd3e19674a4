"""A sum tree in numpy: draws by weight and changes of weights, many at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from batching.core.arrays import IntArray

FloatArray = npt.NDArray[np.float64]
FAN_OUT = 64
"""Children of a node. Three levels hold 262,144 leaves: a numpy call costs more than 64 sums."""


class SumTree:
    """Weights of numbered leaves; finding the leaf at a point of their sum takes O(log n).

    A node holds the running sums of its children, added from left to right. Each is a function
    of the leaves alone, whatever was changed in which order: nothing drifts, and a tree built
    anew from the same leaves is the same to the last bit.

    >>> tree = SumTree(100)
    >>> tree.set(np.array([3, 70]), np.array([1.0, 3.0]))
    >>> tree.total, tree.find(np.array([0.5, 1.0, 3.9])).tolist()
    (4.0, [3, 70, 70])
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError("a tree has at least one leaf")
        self.size = size
        self._running: list[FloatArray] = []
        """By level, the lowest first: for each node 0, then the running sums of its children."""
        nodes = -(-size // FAN_OUT)
        while nodes > 1:
            parents = -(-nodes // FAN_OUT)
            self._running.append(np.zeros((parents * FAN_OUT, FAN_OUT + 1)))
            nodes = parents
        self._running.append(np.zeros((1, FAN_OUT + 1)))
        self._leaves = np.zeros(len(self._running[0]) * FAN_OUT)

    @property
    def weights(self) -> FloatArray:
        """The weights of all leaves."""
        return self._leaves[: self.size]

    @property
    def total(self) -> float:
        return float(self._running[-1][0, -1])

    def set(self, leaves: IntArray, weights: FloatArray) -> None:
        """Gives these leaves these weights; of a leaf named twice, the last one counts."""
        self._leaves[leaves] = weights
        nodes = leaves
        for children, running in zip(self._children(), self._running, strict=True):
            nodes = nodes // FAN_OUT
            running[nodes, 1:] = children[nodes].cumsum(axis=1)

    def find(self, points: FloatArray) -> IntArray:
        """For each point from 0 to below `total`: the leaf where the sum passes it.

        A leaf without weight is never found, as long as there is one with weight.
        """
        nodes = np.zeros(len(points), np.int64)
        rows = np.arange(len(points))
        for level in reversed(self._running):
            running = level.take(nodes, axis=0)
            # Rounding may have left a point at the end of its node, where only empty leaves are.
            points = np.minimum(points, np.nextafter(running[:, -1], 0.0))
            child = (running > points[:, None]).argmax(axis=1) - 1
            points = points - running[rows, child]
            nodes = nodes * FAN_OUT + child
        return nodes

    def _children(self) -> Iterator[FloatArray]:
        """By level, the lowest first: for each node the weights of its children."""
        yield self._leaves.reshape(-1, FAN_OUT)
        for running in self._running[:-1]:
            yield running[:, -1].reshape(-1, FAN_OUT)
