"""Which nodes share a kernel.

A cluster has one result, and all others of its values are read inside: so no two clusters can wait for each other. It
grows forward by the nodes that its result goes through, and backward by the nodes that nobody else reads.

1. Products take what follows them element by element, those deepest in the network first: of two branches that are
   added, the longer one takes the addition. A transposition that keeps the last axis becomes the order of the results.
   A product that gives the scores of attention takes all of that.
2. Products take the movements and the padding before them, and what is computed for their epilogue alone.
3. Reductions of rows take what follows row by row, other reductions too, and what comes before: a layer norm, say.
4. What is left are maps. The last one takes those before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from tilewright.operators import OWN
from tilewright.operators.softmax import ATTENTION
from tilewright.partition.analyzed_graph import AnalyzedGraph
from tilewright.partition.node_expressions import Kind
from tilewright.partition.stage_analysis import (
    common_prefix,
    is_at_own_place,
    keeps_lanes,
    permutation,
    reads_each_once,
)
from tilewright.te import Read, Tensor, Var

# Larger ones compile slowly and gain nothing. A value that is read twice is written out twice, over and over.
_MAX_NODES = 48
_MAX_READS = 1024
# Expressions are walked by functions that call themselves.
_MAX_DEPTH = 192
# Loops are cut where such conditions change, as long as there are few of them.
_MAX_CASES = 3


class Written:
    """A result as one expression: how often it reads each value, how many elements it reads in all, how deep it is."""

    def __init__(self, analyzed: AnalyzedGraph, result: str) -> None:
        self._analyzed = analyzed
        self._times = Counter((result,))
        self._num_reads = 1
        self._depth = 0

    def take(self, n: int) -> None:
        """Write out the value that a node computes."""
        times = self._times.pop(self._analyzed.result(n))
        inputs, expression = self._analyzed.nodes[n].inputs, self._analyzed.expressions[n]
        self._num_reads += times * (len(expression.reads) - 1)
        self._depth += expression.depth
        for position, num_reads in expression.num_reads:
            self._times[inputs[position]] += times * num_reads

    @property
    def is_small(self) -> bool:
        """Whether it is not too large to be compiled."""
        return self._num_reads <= _MAX_READS and self._depth <= _MAX_DEPTH

    def is_small_with(self, n: int) -> bool:
        """Whether it would be so with the value of this node written out, too."""
        expression = self._analyzed.expressions[n]
        num_reads = self._num_reads + self._times[self._analyzed.result(n)] * (len(expression.reads) - 1)
        return num_reads <= _MAX_READS and self._depth + expression.depth <= _MAX_DEPTH


@dataclass(slots=True)
class Cluster:
    """Nodes that become one kernel, which computes `result`."""

    kind: Kind
    nodes: list[int]
    result: str
    front: set[int]
    """The first node, and those that bring it its operands."""
    num_row_axes: int
    """Of a reduction: the leading axes that everything in it runs over, row by row."""
    written: Written
    """The result as an expression of what the cluster reads."""


Accepts = Callable[[Cluster, int, frozenset[str]], bool]


class Clusters:
    """The clusters of a network, as they grow."""

    def __init__(self, analyzed: AnalyzedGraph) -> None:
        self.analyzed = analyzed
        self.cluster_of: dict[int, Cluster] = {}
        deepest_first = sorted(analyzed.alive, key=lambda n: -analyzed.depth[n])
        numbers = [n for n in deepest_first if analyzed.kind(n) is Kind.PRODUCT]
        products = self._with_epilogues([n for n in numbers if not _is_attention(analyzed, n)])
        products += self._with_epilogues([n for n in numbers if n not in self.cluster_of])
        for cluster in products:
            self._grow_backward(cluster, self._feeds_product)
        for n in analyzed.alive:
            if analyzed.kind(n) is Kind.REDUCTION and n not in self.cluster_of:
                cluster = self._start(n)
                self._grow_forward(cluster, self._is_in_rows)
                self._grow_backward(cluster, self._feeds_reduction)
        for n in reversed(analyzed.alive):
            if analyzed.kind(n) is Kind.MAP and n not in self.cluster_of:
                self._grow_backward(self._start(n), self._feeds_map)

    def _with_epilogues(self, products: Sequence[int]) -> list[Cluster]:
        """The clusters of products with what follows them; all begin before one of them grows."""
        clusters = [self._start(n) for n in products]
        for cluster in clusters:
            self._grow_forward(cluster, self._is_epilogue)
            self._end_at_bytes(cluster)
        return clusters

    def all(self) -> list[Cluster]:
        """Each cluster once."""
        return list({id(cluster): cluster for cluster in self.cluster_of.values()}.values())

    def _start(self, n: int) -> Cluster:
        analyzed = self.analyzed
        written = self._written([n], analyzed.result(n))
        cluster = Cluster(analyzed.kind(n), [n], analyzed.result(n), {n}, analyzed.expressions[n].num_row_axes, written)
        self.cluster_of[n] = cluster
        return cluster

    def _written(self, nodes: Sequence[int], result: str) -> Written:
        written = Written(self.analyzed, result)
        for n in sorted(nodes, reverse=True):
            written.take(n)
        return written

    # --- forward -----------------------------------------------------------------------------------------------------

    def _grow_forward(self, cluster: Cluster, accepts: Accepts) -> None:
        while len(cluster.nodes) < _MAX_NODES:
            following = self._following(cluster, accepts)
            if not following:
                return
            result = self.analyzed.result(following[-1])
            written = self._written([*cluster.nodes, *following], result)
            if not written.is_small:
                return
            cluster.nodes += following
            cluster.result, cluster.written = result, written
            self.cluster_of.update((n, cluster) for n in following)

    def _end_at_bytes(self, cluster: Cluster) -> None:
        """Leave what widens a result of bytes to its readers, which then read a quarter as much.

        A cluster of nodes behind each other is looked at, from its end up to the last value that is bytes.
        """
        analyzed = self.analyzed
        if cluster.result in analyzed.outputs or _is_bytes(analyzed, cluster.result):
            return
        last = [n for n in cluster.nodes if _is_bytes(analyzed, analyzed.result(n))][-1:]
        if not last or last[0] == cluster.nodes[0]:
            return
        at = cluster.nodes.index(last[0]) + 1
        kept, left = cluster.nodes[:at], cluster.nodes[at:]
        readers = {m for n in kept for m in analyzed.readers.get(analyzed.result(n), ()) if m not in kept}
        if not readers.issubset(analyzed.readers[analyzed.result(last[0])]):
            return
        cluster.nodes, cluster.result = kept, analyzed.result(last[0])
        cluster.written = self._written(kept, cluster.result)
        for n in left:
            del self.cluster_of[n]

    def _following(self, cluster: Cluster, accepts: Accepts) -> list[int]:
        """The nodes between the result and the next value that all its readers lead to, if all of them fit."""
        analyzed = self.analyzed
        last = cluster.result
        values = {last}
        found: list[int] = []
        waiting = set(analyzed.readers.get(last, ()))
        while waiting and last not in analyzed.outputs:
            n = min(waiting)
            if n in self.cluster_of or not accepts(cluster, n, frozenset(values)):
                return []
            waiting.remove(n)
            found.append(n)
            if not waiting:
                return found
            last = analyzed.result(n)
            values.add(last)
            waiting |= set(analyzed.readers.get(last, ()))
        return []

    def _is_epilogue(self, cluster: Cluster, n: int, values: frozenset[str]) -> bool:
        """A map of the elements at their own places; or a transposition of the results that keeps the last axis.

        Or attention by these results as scores, which are then not kept in memory.
        """
        analyzed = self.analyzed
        if _is_attention(analyzed, n):
            return analyzed.nodes[n].inputs[1] not in values and not values.isdisjoint(analyzed.nodes[n].inputs[:1])
        if len(values) > 1 and any(_is_attention(analyzed, m) for m in cluster.nodes):
            return False  # its bands are of one stage, which only a chain of maps is part of
        if analyzed.kind(n) is not Kind.MAP:
            return False
        reads = analyzed.reads(n, values)
        if reads and all(is_at_own_place(read, stage) for stage, read in reads):
            return True
        movement = analyzed.movement(n)
        order = None if movement is None else permutation(movement, analyzed.expressions[n].outputs[0].axes)
        return order is not None and len(values) == 1 and keeps_lanes(order, analyzed.shape(cluster.result))

    def _is_in_rows(self, cluster: Cluster, n: int, values: frozenset[str]) -> bool:
        """A map of the elements at their own places; or a map or a reduction that stays in its row."""
        analyzed = self.analyzed
        if analyzed.kind(n) not in (Kind.MAP, Kind.REDUCTION):
            return False
        reads = analyzed.reads(n, values)
        if not reads:
            return False
        if analyzed.kind(n) is Kind.MAP and all(is_at_own_place(read, stage) for stage, read in reads):
            return True
        stages = analyzed.expressions[n].stages
        return self._stays_in_rows(cluster, min(analyzed.expressions[n].num_row_axes, _common_prefix(reads)), stages)

    def _stays_in_rows(self, cluster: Cluster, num_axes: int, stages: Sequence[Tensor]) -> bool:
        """Whether these stages run over the rows of the cluster, of which `num_axes` axes at most are common."""
        common = min(num_axes, cluster.num_row_axes)
        rows = self.analyzed.shape(cluster.result)[:common]
        if math.prod(rows) == 1 or any(stage.shape[:common] != rows for stage in stages):
            return False
        cluster.num_row_axes = common
        return True

    # --- backward ----------------------------------------------------------------------------------------------------

    def _grow_backward(self, cluster: Cluster, accepts: Accepts) -> None:
        """Take the maps that only the cluster reads, the last ones first."""
        analyzed = self.analyzed
        inside = set(cluster.nodes)
        seen: set[int] = set()
        waiting = [-m for n in cluster.nodes for m in self._only_read_by(inside, n, seen)]
        heapify(waiting)
        while waiting and len(cluster.nodes) < _MAX_NODES:
            n = -heappop(waiting)
            if not cluster.written.is_small_with(n) or not accepts(cluster, n, frozenset(analyzed.wanted[n])):
                continue
            if cluster.front.intersection(analyzed.readers[analyzed.result(n)]):
                cluster.front.add(n)
            cluster.nodes.append(n)
            cluster.written.take(n)
            self.cluster_of[n] = cluster
            inside.add(n)
            for m in self._only_read_by(inside, n, seen):
                heappush(waiting, -m)

    def _only_read_by(self, inside: set[int], reader: int, seen: set[int]) -> list[int]:
        """The maps without a cluster that the reader reads, and no others than nodes inside; those not yet seen."""
        analyzed = self.analyzed
        found: list[int] = []
        for name in analyzed.nodes[reader].inputs:
            n = analyzed.producer.get(name)
            if n is None or n in seen or n in self.cluster_of or name in analyzed.outputs:
                continue
            readers = analyzed.readers[name]
            is_read_inside = len(readers) <= _MAX_NODES and inside.issuperset(readers)
            if is_read_inside and analyzed.kind(n) is Kind.MAP:
                seen.add(n)
                found.append(n)
        return found

    def _feeds_product(self, cluster: Cluster, n: int, values: frozenset[str]) -> bool:
        """A movement that a product can do in passing, padding, or a map for the epilogue alone."""
        analyzed = self.analyzed
        readers = analyzed.readers[analyzed.result(n)]
        attention = [m for m in readers if _is_attention(analyzed, m)]
        if attention:
            return analyzed.movement(n) is not None and analyzed.reads_lanes([n, *attention])
        if cluster.front.intersection(readers):
            is_simple = analyzed.movement(n) is not None or analyzed.expressions[n].is_padding
            return is_simple and analyzed.reads_lanes([n, *sorted(cluster.front)])
        if analyzed.movement(n) is not None:
            return True
        return all(is_at_own_place(read, stage) for stage, read in self._reads_by(readers, values))

    def _reads_by(self, readers: Sequence[int], values: frozenset[str]) -> list[tuple[Tensor, Read]]:
        return [found for reader in readers for found in self.analyzed.reads(reader, values)]

    def _feeds_reduction(self, cluster: Cluster, n: int, values: frozenset[str]) -> bool:
        """A map that is computed row by row, or one so cheap that it may be computed again; padding of windows."""
        analyzed = self.analyzed
        stages = analyzed.expressions[n].stages
        reads = self._reads_by(analyzed.readers[analyzed.result(n)], values)
        num_axes = min(analyzed.expressions[n].num_row_axes, _common_prefix(reads))
        if analyzed.expressions[n].is_padding or self._stays_in_rows(cluster, num_axes, stages):
            return True
        return analyzed.expressions[n].is_cheap and all(_is_read_at_variables(read) for _, read in reads)

    def _feeds_map(self, cluster: Cluster, n: int, values: frozenset[str]) -> bool:
        """A movement, or a map that is not computed more often than by itself."""
        analyzed = self.analyzed
        if analyzed.movement(n) is not None:
            return True
        cases = analyzed.expressions[n].num_cases
        if cases and cases + sum(analyzed.expressions[m].num_cases for m in cluster.nodes) > _MAX_CASES:
            return False
        return self._is_read_once(cluster, analyzed.result(n))

    def _is_read_once(self, cluster: Cluster, name: str) -> bool:
        """Whether each element of the value is needed at one place only, looking through movements."""
        analyzed = self.analyzed
        readers = analyzed.readers[name]
        reads = [(m, stage, read) for m in readers for stage, read in analyzed.reads(m, {name})]
        if len({(m, read.indices) for m, _, read in reads}) > len({(m, stage) for m, stage, _ in reads}):
            return False
        moved = [analyzed.result(m) for m in readers if analyzed.movement(m) is not None]
        return all(reads_each_once([read], stage) for _, stage, read in reads) and all(
            self._is_read_once(cluster, result) for result in moved if result != cluster.result
        )


def _is_attention(analyzed: AnalyzedGraph, n: int) -> bool:
    node = analyzed.nodes[n]
    return (node.domain, node.op) == (OWN, ATTENTION)


def _is_bytes(analyzed: AnalyzedGraph, name: str) -> bool:
    known = analyzed.graph.types.get(name)
    return known is not None and known.dtype in ("int8", "uint8")


def _common_prefix(reads: Sequence[tuple[Tensor, Read]]) -> int:
    """The leading axes that all of the reads have in common with their stages; as many as there are without reads."""
    return min((common_prefix(read, stage.axes) for stage, read in reads), default=1 << 30)


def _is_read_at_variables(read: Read) -> bool:
    """Whether each element is read once: every index is a variable of its own."""
    variables = [index for index in read.indices if isinstance(index, Var)]
    return len(variables) == len(read.indices) == len(set(variables))
