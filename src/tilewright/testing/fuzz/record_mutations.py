"""Changes to files of JSON lines: to values inside a line, to the steps of a trace, to lines, and to bytes."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeGuard

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
_NUM_CHANGES = (1, 1, 1, 2, 2, 3, 5)
_FACTORS = (1, 2, 3, 5, 7, 8, 16, 32, 64, 1000, 1024, 2**20, 2**33, 2**63, 10**30)
_DEEP = (10, 300, 900, 1100, 200_000)


def mutated(lines: list[str], rng: random.Random) -> bytes:
    """The lines of a file with a few changes; with those of a record file, often to programs alone."""
    changed = list(lines)
    is_of_programs = '"trace"' in lines[-1] and rng.random() < 0.6
    kinds = _CHANGES_OF_PROGRAMS if is_of_programs else _CHANGES
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


def _make_best(lines: list[str], rng: random.Random) -> None:
    """A record that looks faster than all others."""

    def change(data: Any) -> None:
        if isinstance(data, dict) and data.get("latency_s"):
            data["latency_s"] = 1e-9

    _edit(lines, rng, change)


# --- lines -----------------------------------------------------------------------------------------------------------


def _edit(lines: list[str], rng: random.Random, change: Callable[[Any], None]) -> None:
    """Change the value of one line, if it has one."""
    index = rng.randrange(len(lines))
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
    _make_best,
    _change_lines,
    _change_text,
)
_CHANGES_OF_PROGRAMS = (_change_decision, _change_decision, _change_steps, _change_steps, _make_best)
