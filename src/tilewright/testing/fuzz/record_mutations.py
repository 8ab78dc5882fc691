"""Changes to files of JSON lines: values inside a line, steps of a trace, nodes of a task, lines, and bytes."""

from __future__ import annotations

import contextlib
import json
import math
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeGuard

from tilewright.errors import ExpressionError
from tilewright.te import Task

Site: TypeAlias = "tuple[Any, int | str]"
"""A value in a tree of JSON: what holds it, and where."""

NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 64, 512, 513, 1024, 2**31, 2**33, 2**63, 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1e-320, 1e-300, 1e300, 1.5, math.nan, math.inf, -math.inf),
)
TEXTS = ("", " ", "i", "i.0", "i.1", "nowhere", "OK", "INVALID", "llvm", "a\nb", 'a"b', "\0", "\ud800", "ß", "x" * 5000)
_BYTES = (
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b"\n\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b"\\",
    b"\x1f\x8b",
)
_NODES: tuple[Any, ...] = (
    *(["const", "float32", "nan"], ["const", "float32", 1e300], ["const", "int64", -1], ["const", "bool", True]),
    *(["axis", "i", 2**31 - 1], ["axis", "i", 1], ["reduce_axis", "k", 3], ["placeholder", "Z", "float16", [], True]),
    *(["cast", "bfloat16", 5], ["cast", "int8", 5], ["select", 5, 5, 5], ["read", 0, []], ["compute", "Y", [], 5]),
)
_OPERATORS = ("add", "mod", "floordiv", "div", "max", "lt", "and", "neg", "not", "abs", "sqrt", "sum", "prod", "argmax")
_DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
_NUM_CHANGES = (1, 1, 1, 2, 2, 3, 5)
_FACTORS = (1, 2, 3, 5, 7, 8, 16, 32, 64, 1000, 1024, 2**20, 2**33, 2**63, 10**30)
_DEEP = (10, 300, 900, 1100, 200_000)


def mutated(lines: list[str], rng: random.Random) -> bytes:
    """The lines of a file with a few changes; with those of a record file, often to programs or to tasks alone."""
    changed = list(lines)
    kinds = _CHANGES
    if '"trace"' in lines[-1] and rng.random() < 0.7:
        kinds = _CHANGES_OF_PROGRAMS if rng.random() < 0.8 else (_change_task,)
    for _ in range(rng.choice(_NUM_CHANGES)):
        if changed:
            rng.choice(kinds)(changed, rng)
    data = ("\n".join(changed) + "\n").encode("utf-8", "surrogatepass")
    return _change_bytes(data, rng) if rng.random() < 0.1 else data


# --- values ----------------------------------------------------------------------------------------------------------


def _change_value(lines: list[str], rng: random.Random) -> None:
    """Any value of one line."""
    _edit(lines, rng, lambda data: _replace_one(data, list(_sites(data)), rng))


def _change_trace_value(lines: list[str], rng: random.Random) -> None:
    """A value inside a trace, most often another of the same kind."""

    def change(data: Any) -> None:
        trace = data.get("trace") if isinstance(data, dict) else None
        if isinstance(trace, list):
            _replace_one(trace, list(_sites(trace)), rng)

    _edit(lines, rng, change)


def _change_decision(lines: list[str], rng: random.Random) -> None:
    """A name or a number of a step becomes another, so that the line is a record still."""

    def change(data: Any) -> None:
        steps = data.get("trace") if isinstance(data, dict) else None
        if not _is_steps(steps):
            return
        leaves = [(h, p) for h, p in _sites(steps) if p != "step" and isinstance(h[p], str | int)]
        holder, place = rng.choice(leaves)
        old = holder[place]
        names = [h[p] for h, p in leaves if isinstance(h[p], str)]
        holder[place] = rng.choice(names if isinstance(old, str) else _FACTORS)

    _edit(lines, rng, change)


def _replace_one(tree: Any, sites: list[Site], rng: random.Random) -> None:
    if not sites:
        return
    holder, place = rng.choice(sites)
    old = holder[place]
    others = [h[p] for h, p in sites]
    match rng.randrange(6):
        case 0 | 1:
            new = _alike(old, others, rng)
        case 2:
            new = rng.choice(others)
        case 3:
            new = rng.choice((None, True, False, [], {}, *NUMBERS, *TEXTS))
        case 4 if isinstance(holder, list) and isinstance(place, int):
            holder.insert(place, json.loads(json.dumps(old)))
            return
        case _:
            del holder[place]
            return
    holder[place] = json.loads(json.dumps(new))


def _alike(old: Any, others: list[Any], rng: random.Random) -> Any:
    """Another value of the same kind."""
    if isinstance(old, str):
        return rng.choice([*(other for other in others if isinstance(other, str)), *TEXTS])
    if isinstance(old, int | float):
        return rng.choice((*NUMBERS, old + 1, old - 1, old * 2, -old))
    if isinstance(old, list):
        return rng.choice((old[::-1], old * 2, old[:1], [old], old * 50))
    return rng.choice((None, {}, old))


def _sites(tree: Any) -> Iterator[Site]:
    """All values of a tree."""
    if isinstance(tree, dict | list):
        for place in list(tree) if isinstance(tree, dict) else range(len(tree)):
            yield tree, place
            yield from _sites(tree[place])


# --- steps -----------------------------------------------------------------------------------------------------------


def _change_steps(lines: list[str], rng: random.Random) -> None:
    """Steps of a trace left out, repeated, in another order, or from another trace; or steps that ask for much."""
    traces = [data["trace"] for data in map(_parsed, lines) if isinstance(data, dict) and _is_steps(data.get("trace"))]

    def change(data: Any) -> None:
        steps = data.get("trace") if isinstance(data, dict) else None
        if not _is_steps(steps):
            return
        match rng.randrange(7):
            case 0:
                del steps[rng.randrange(len(steps))]
            case 1:
                rng.shuffle(steps)
            case 2:
                at = rng.randrange(len(steps))
                steps[at:at] = [steps[at]] * rng.choice((1, 2, 30, 2000))
            case 3:
                steps += rng.choice(traces)
            case 4:
                steps.append({"step": rng.choice(_KINDS), "stage": rng.choice(steps)["stage"], "arguments": ["i"]})
            case 5:
                _ask_for_much(steps, rng)
            case _:
                for loop in ("i", "j", "k", "i0", "i1", "i2", "i3", "r0"):
                    steps.append({"step": "unroll", "stage": rng.choice(steps)["stage"], "arguments": [loop]})

    _edit(lines, rng, change)


_KINDS = ("unroll", "vectorize", "parallel", "fuse", "reorder", "cache_write", "cache_read", "compute_root", "rfactor")


def _ask_for_much(steps: list[dict[str, Any]], rng: random.Random) -> None:
    """Factors and limits far beyond all loops."""
    for step in steps:
        arguments = step.get("arguments")
        if step.get("step") == "split" and isinstance(arguments, list):
            arguments[1:] = [[rng.choice((2, 64, 1024, 2**33, 10**30)) for _ in range(rng.choice((1, 2, 3, 200)))]]
        elif step.get("step") == "pragma" and isinstance(arguments, list):
            arguments[1:] = [2**33]
    place = rng.choice(steps)
    steps.append({"step": "pragma", "stage": place["stage"], "arguments": [rng.choice(("i", "i0", "i.0")), 2**33]})


def _is_steps(trace: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(trace, list) and bool(trace) and all(isinstance(s, dict) and "stage" in s for s in trace)


# --- tasks -----------------------------------------------------------------------------------------------------------


def _change_task(lines: list[str], rng: random.Random) -> None:
    """Nodes of a task; where it is a task still, it often gets the hash that it has now."""

    def change(data: Any) -> None:
        definition = data.get("definition") if isinstance(data, dict) else None
        nodes = definition.get("nodes") if isinstance(definition, dict) else None
        if not isinstance(nodes, list) or not nodes:
            return
        _change_nodes(nodes, rng)
        if rng.random() < 0.7:
            with contextlib.suppress(ExpressionError):
                data["tilewright_task"] = Task.from_json(definition).hash

    at = [number for number, line in enumerate(lines) if line.startswith('{"tilewright_task"')]
    if at:
        _edit_line(lines, rng.choice(at), rng, change)


def _change_nodes(nodes: list[Any], rng: random.Random) -> None:
    position = rng.randrange(len(nodes))
    match rng.randrange(14):
        case 0:
            nodes[position] = rng.choice(_NODES)
        case 1:
            del nodes[position]
        case 2:
            nodes.insert(position, nodes[rng.randrange(len(nodes))])
        case 3:
            other = rng.randrange(len(nodes))
            nodes[position], nodes[other] = nodes[other], nodes[position]
        case 4:
            number = rng.choice((10, 390, 420, 5000, 60_000))
            nodes[-1:-1] = [["unary", "neg", len(nodes) - 2 + n] for n in range(number)]
        case 5 | 6 | 7:
            leaves = [(h, p) for h, p in _sites(nodes) if isinstance(h[p], str | int | float)]
            holder, place = rng.choice(leaves)
            holder[place] = _other_leaf(holder[place], len(nodes), rng)
        case _:
            nodes[:] = [_alike_node(node, rng) for node in nodes]


def _alike_node(node: Any, rng: random.Random) -> Any:
    """Often another node of the same kind and type, so that the task computes something else."""
    match node:
        case ["binary", "add" | "mul" | "max" as op, a, b]:
            return ["binary", rng.choice((op, op, "add", "sub", "mul", "max", "min")), a, b]
        case ["const", "float32", value]:
            return ["const", "float32", rng.choice((value, "nan", "-inf", -0.0, 1e300, 1e-320, 0.1))]
        case ["unary", _, x]:
            return ["unary", rng.choice(("neg", "abs", "exp", "sqrt", "erf", "atanh", "floor")), x]
        case ["reduce", _, [value], axes]:
            return ["reduce", rng.choice(("sum", "prod", "max", "min")), [value], axes]
        case ["axis" | "reduce_axis" as kind, name, extent]:
            return [kind, rng.choice((name, f"{name}_")), extent if rng.random() < 0.9 else 1]
    return node


def _other_leaf(old: Any, num_nodes: int, rng: random.Random) -> Any:
    if isinstance(old, str):
        return rng.choice((*_DTYPES, *_OPERATORS, "i", "j", "A"))
    return rng.choice((rng.randrange(num_nodes), rng.randrange(num_nodes), rng.choice(NUMBERS)))


def _make_best(lines: list[str], rng: random.Random) -> None:
    """A record that looks faster than all others."""

    def change(data: Any) -> None:
        if isinstance(data, dict) and data.get("latency_s"):
            data["latency_s"] = 1e-9

    _edit(lines, rng, change)


# --- lines -----------------------------------------------------------------------------------------------------------


def _edit(lines: list[str], rng: random.Random, change: Callable[[Any], None]) -> None:
    """Change the value of one line, if it has one."""
    _edit_line(lines, rng.randrange(len(lines)), rng, change)


def _edit_line(lines: list[str], index: int, rng: random.Random, change: Callable[[Any], None]) -> None:
    data = _parsed(lines[index])
    if data is not None:
        change(data)
        lines[index] = json.dumps(data, separators=rng.choice((None, (",", ":"), (",", ":"))))


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _change_lines(lines: list[str], rng: random.Random) -> None:
    """A line left out, twice, in another place, cut off, empty, or something else."""
    index, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(7):
        case 0:
            del lines[index]
        case 1:
            lines.insert(other, lines[index])
        case 2:
            lines[index], lines[other] = lines[other], lines[index]
        case 3:
            lines[index] = lines[index][: rng.randrange(len(lines[index]) + 1)]
        case 4:
            lines[index] += rng.choice(("\r", " ", lines[other], "\n", "\t\t", ","))
        case 5:
            lines.insert(index, rng.choice(("", "null", "[]", "{}", "0", '"text"', "NaN", "# comment", "\ufeff")))
        case _:
            bracket, end = rng.choice((("[", "]"), ('{"a":', "}"), ("[", "")))
            depth = rng.choice(_DEEP)
            deep = bracket * depth + "1" + end * depth
            lines[index] = deep if rng.random() < 0.3 else lines[index].replace("[", deep, 1)


def _change_text(lines: list[str], rng: random.Random) -> None:
    """Some characters of a line: JSON as well as not."""
    index = rng.randrange(len(lines))
    line = lines[index]
    at = rng.randrange(len(line) + 1)
    end = min(len(line), at + rng.choice((0, 1, 1, 2, 10)))
    piece = rng.choice(
        ("", "0", "9" * 5000, "-", ".", "e999", '"', "\\", "[", "]", "{", "}", ",", ":", "null", "\\ud800")
    )
    lines[index] = line[:at] + piece + line[end:]


def _change_bytes(data: bytes, rng: random.Random) -> bytes:
    """Some bytes of a file, or its end."""
    at = rng.randrange(len(data) + 1)
    match rng.randrange(4):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + rng.choice(_BYTES) * rng.choice((1, 1, 3, 10_000)) + data[at:]
        case 2:
            return bytes(byte ^ (rng.randrange(256) if rng.random() < 0.001 else 0) for byte in data)
        case _:
            return data[:at] + data[at + rng.randrange(20) :]


_CHANGES: tuple[Callable[[list[str], random.Random], None], ...] = (
    _change_value,
    _change_value,
    _change_trace_value,
    _change_trace_value,
    _change_trace_value,
    _change_steps,
    _change_steps,
    _change_steps,
    _change_task,
    _change_task,
    _change_task,
    _make_best,
    _change_lines,
    _change_text,
)
_CHANGES_OF_PROGRAMS = (_change_decision, _change_decision, _change_steps, _change_steps, _make_best)
