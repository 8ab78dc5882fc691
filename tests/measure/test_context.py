"""Contexts as text, of networks and of tasks."""

from __future__ import annotations

import math
import re

import pytest

from tilewright.errors import UsageError
from tilewright.measure import WARM, Context, activation_bytes, constant_bytes
from tilewright.testing.measurer_checks import doubling, product


@pytest.mark.parametrize(
    ("text", "cold_bytes"),
    [
        ("warm", 0),
        ("cold-1", 1),
        ("cold-1000", 1000),
        ("cold-1536K", 3 << 19),
        ("cold-47M", 47 << 20),
        ("cold-2G", 2 << 30),
        ("cold-47M-8M", 47 << 20),
        ("cold-0-8M", 0),
    ],
)
def test_a_context_is_its_text(text: str, cold_bytes: int) -> None:
    context = Context.parse(text)
    assert context.cold_bytes == cold_bytes
    assert str(context) == text
    assert Context.of(text) == Context.of(context) == context


def test_equal_sizes_are_written_in_one_way() -> None:
    assert str(Context.parse("cold-1024K")) == str(Context.parse("cold-1048576")) == "cold-1M"
    assert str(Context.parse("cold-0M-2048K")) == "cold-0-2M"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cold",
        "cold-",
        "cold-0",
        "cold-0M",
        "cold-8m",
        "cold-8MB",
        "cold--8M",
        "cold-1.5M",
        "hot",
        "cold-9\n",
        "cold-8M-",
        "cold-8M-0",
        "cold-0-0",
        "cold-8M-8m",
        "cold-8M-1M-1M",
        "cold--1M",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"the context is {re.escape(repr(text))}; it must be 'warm', or 'cold-' and"):
        Context.parse(text)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="context is 8; it must be of the class str"):
        Context.of(8)  # type: ignore[arg-type]


@pytest.mark.parametrize("weight_bytes", [0, 1, 2, 3, 5, 1000, 46_827_520, 46_827_520 - 40_000, 102_000_000, 10**12])
def test_the_context_of_a_network_is_near_its_size(weight_bytes: int) -> None:
    context = Context.of_network(weight_bytes)
    assert context.cold_bytes == pytest.approx(weight_bytes, rel=0.125)
    assert Context.parse(str(context)) == context
    assert re.fullmatch(r"[A-Za-z0-9.-]+", str(context))


def test_a_small_change_of_a_network_mostly_leaves_its_context() -> None:
    sizes = range(10**6, 10**8, 10**5)
    changed = [size for size in sizes if Context.of_network(size) != Context.of_network(size + size // 100)]
    assert len(changed) < 0.1 * len(sizes)


def test_a_task_without_constants_is_warm() -> None:
    cold = Context(1 << 20)
    assert cold.of_task(doubling()) == WARM
    assert cold.of_task(product()) == cold
    assert WARM.of_task(product()) == WARM
    assert constant_bytes([doubling(), product(), product()]) == 2 * 16 * 32 * 4


@pytest.mark.parametrize(
    ("activation_bytes", "expected"), [(0, 0), (65_535, 0), (65_536, 65_536), (8_028_160, 8 << 20), (10**12, 1 << 40)]
)
def test_the_activations_of_a_network_are_rounded_to_powers_of_two(activation_bytes: int, expected: int) -> None:
    context = Context.of_network(1 << 20, activation_bytes)
    assert (context.cold_bytes, context.activation_bytes) == (1 << 20, expected)
    assert Context.parse(str(context)) == context
    assert context.of_task(doubling()) == Context(0, expected)


def test_activations_are_inputs_and_outputs_and_no_constants() -> None:
    assert activation_bytes(product()) == sum(
        4 * math.prod(tensor.shape) for tensor in (*product().inputs, *product().outputs) if not tensor.is_constant
    )
