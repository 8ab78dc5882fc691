"""The memory plan: values that are needed at once never overlap, and the arena is near the least possible."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.deploy import memory_plan
from tilewright.deploy.memory_plan import ALIGNMENT, Block, MemoryPlan, plan_memory

lifetimes = st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda t: (t[0], t[0] + t[1]))
block_lists = st.lists(st.builds(lambda n, t: Block(n, *t), st.integers(1, 5000), lifetimes), max_size=25)


def overlapping(blocks: list[Block], plan: MemoryPlan) -> list[tuple[Block, Block]]:
    """Pairs of blocks that are needed at the same step and share a byte, by looking at each step in turn."""
    found = []
    placed = [(offset, offset + block.nbytes, block) for block, offset in zip(blocks, plan.offsets, strict=True)]
    for step in range(max((block.last for block in blocks), default=-1) + 1):
        live = [item for item in placed if item[2].first <= step <= item[2].last]
        live.sort(key=lambda item: item[:2])
        found += [(a, b) for (_, end, a), (begin, _, b) in pairwise(live) if begin < end]
    return found


def lower_bound(blocks: list[Block]) -> int:
    """What no plan can go below: the most bytes that are needed at one step."""
    changes = Counter[int]()
    for block in blocks:
        changes[block.first] += _rounded(block)
        changes[block.last + 1] -= _rounded(block)
    return max(accumulate(changes[step] for step in sorted(changes)), default=0)


@given(block_lists)
def test_blocks_that_live_at_once_do_not_overlap(blocks: list[Block]) -> None:
    plan = plan_memory(blocks)
    assert overlapping(blocks, plan) == []
    assert all(offset % ALIGNMENT == 0 for offset in plan.offsets)
    assert all(o + b.nbytes <= plan.nbytes for b, o in zip(blocks, plan.offsets, strict=True))
    assert plan.nbytes >= lower_bound(blocks)


@given(block_lists)
def test_so_do_those_of_a_network_in_which_too_many_meet(blocks: list[Block]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_plan, "_MOST_MEETINGS", -1)
        plan = plan_memory(blocks)
    assert overlapping(blocks, plan) == []
    assert all(offset % ALIGNMENT == 0 for offset in plan.offsets)
    assert plan.nbytes == max((o + _rounded(b) for b, o in zip(blocks, plan.offsets, strict=True)), default=0)


def _rounded(block: Block) -> int:
    return -(-block.nbytes // ALIGNMENT) * ALIGNMENT


@pytest.mark.parametrize(
    "blocks",
    [
        [Block(64 * (1 + n % 7), n, n + 1 + n % 3) for n in range(20_000)],
        [Block(64 * (1 + n % 7), n, 20_000 + n) for n in range(20_000)],
        [Block(64 * (1 + n % 7), n, n + (1000 if n % 100 == 0 else 1)) for n in range(20_000)],
    ],
    ids=["chain", "all at once", "some for long"],
)
def test_many_blocks_come_close_to_the_least_possible(blocks: list[Block]) -> None:
    plan = plan_memory(blocks)
    assert plan.nbytes <= 1.5 * lower_bound(blocks)


def test_no_blocks_need_no_memory() -> None:
    assert plan_memory([]) == MemoryPlan((), 0)


def test_a_chain_needs_two_neighbours_at_a_time() -> None:
    sizes = [64, 128, 640, 320, 64, 1280, 192]
    chain = [Block(n, step, step + 1) for step, n in enumerate(sizes)]
    plan = plan_memory(chain)
    assert plan.nbytes == lower_bound(chain) == 1280 + 192


def residual_network(num_stages: int, blocks_per_stage: int) -> list[Block]:
    """Bottlenecks: the input of each block is needed until the sum at its end; each stage halves the size."""
    blocks, step, nbytes = [], 0, 802816 * 4
    for _ in range(num_stages):
        for _ in range(blocks_per_stage):
            blocks.append(Block(nbytes, step, step + 3))
            blocks.append(Block(nbytes // 4, step + 1, step + 2))
            blocks.append(Block(nbytes // 4, step + 2, step + 3))
            blocks.append(Block(nbytes // 2, step + 2, step + 2))  # a workspace
            step += 3
        nbytes //= 2
    return blocks


def branching_network(num_modules: int) -> list[Block]:
    """Inception: four branches of different lengths from one input, joined at the end."""
    blocks = []
    for module in range(num_modules):
        step, nbytes = module * 7, 64 * (900 - 50 * module)
        blocks.append(Block(nbytes, step, step + 6))
        lengths = [(1, 0.3), (3, 0.2), (5, 0.25), (6, 0.25)]
        start = step
        for length, share in lengths:
            blocks.append(Block(int(nbytes * share), min(start + 1, step + 6), step + 7))
            start += length // 2
    return blocks


@pytest.mark.parametrize(
    "blocks",
    [residual_network(4, 3), residual_network(1, 8), branching_network(9)],
    ids=["residual", "one stage", "branches"],
)
def test_networks_come_close_to_the_least_possible(blocks: list[Block]) -> None:
    plan = plan_memory(blocks)
    assert overlapping(blocks, plan) == []
    assert plan.nbytes <= 1.1 * lower_bound(blocks)
    assert plan.nbytes < 0.5 * sum(b.nbytes for b in blocks)


def test_the_tightest_gap_is_taken() -> None:
    """Two gaps open at step 1; the small block leaves the wide one for the block that needs it."""
    blocks = [
        Block(640, 0, 0),
        Block(512, 0, 2),
        Block(128, 0, 0),
        Block(448, 0, 2),
        Block(128, 1, 2),
        Block(640, 1, 2),
    ]
    assert plan_memory(blocks).nbytes == lower_bound(blocks)
