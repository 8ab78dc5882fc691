"""Workload strings: `name:sizes`, with options and fused stages, such as `c2d:1x28x28x128,128,3x3,s1,p1+relu`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.errors import ExpressionError, UsageError
from tilewright.te import Task
from tilewright.workloads.computation import FUSED
from tilewright.workloads.families import FAMILIES, Family, Option, names


def parse(text: str) -> Task:
    """The task that a workload string names; its name is the canonical string, as an identifier.

    >>> parse("gmm:512x512x512+relu").name
    'gmm_512x512x512_relu'
    """
    return _read(text).task()


def canonical(text: str) -> str:
    """The one way to write this workload: options in order, those with a default left out.

    >>> canonical("c2d:1x14x14x256,256,3x3,d1,p1")
    'c2d:1x14x14x256,256,3x3,s1,p1'
    """
    return str(_read(text))


@dataclass(frozen=True, slots=True)
class _Specification:
    family: Family
    fields: tuple[tuple[int, ...], ...]
    options: dict[Option, int]
    fused: tuple[str, ...]

    def __str__(self) -> str:
        fields = ["x".join(map(str, sizes)) for sizes in self.fields]
        options = [
            f"{option.letter}{value}"
            for option, value in self.options.items()
            if option.is_always_written or value != option.default
        ]
        return "+".join((f"{self.family.name}:{','.join(fields + options)}", *self.fused))

    def task(self) -> Task:
        arguments = [
            sizes[0] if field.lengths == (1,) else sizes
            for field, sizes in zip(self.family.fields, self.fields, strict=True)
        ]
        try:
            computation = self.family.make(*arguments, **{o.keyword: value for o, value in self.options.items()})
            for name in self.fused:
                computation = FUSED[name](computation)
        except (UsageError, ExpressionError) as error:
            raise UsageError(f"workload {self}: {error}") from error
        return Task(computation.inputs, computation.output, re.sub(r"\W", "_", str(self)))


def _read(text: str) -> _Specification:
    name, colon, rest = text.partition(":")
    if name not in FAMILIES:
        raise UsageError(
            f"a workload begins with one of {', '.join(names())}, got {name!r}; write for example gmm:512x512x512"
        )
    family = FAMILIES[name]
    if not colon:
        raise UsageError(f"a workload has sizes after its name, got {text!r}; {_remedy(family)}")
    sizes, *fused = rest.split("+")
    parts = sizes.split(",")
    num_fields = len(family.fields)
    if len(parts) < num_fields:
        raise UsageError(
            f"{name} has {num_fields} parts between commas, got {len(parts)} in {text!r}; {_remedy(family)}"
        )
    fields = tuple(
        _read_sizes(family, field.form, field.lengths, part)
        for field, part in zip(family.fields, parts[:num_fields], strict=True)
    )
    options = _read_options(family, parts[num_fields:])
    return _Specification(family, fields, options, _read_fused(family, fused))


def _read_sizes(family: Family, form: str, lengths: tuple[int, ...], part: str) -> tuple[int, ...]:
    numbers = part.split("x")
    if len(numbers) not in lengths:
        counts = " or ".join(map(str, lengths))
        raise UsageError(f"{form} of {family.name} takes {counts} sizes, got {part!r}; {_remedy(family)}")
    if not all(_is_number(number) and int(number) > 0 for number in numbers):
        raise UsageError(f"{form} of {family.name} takes whole numbers above 0, got {part!r}; {_remedy(family)}")
    return tuple(map(int, numbers))


def _read_options(family: Family, parts: list[str]) -> dict[Option, int]:
    by_letter = {option.letter: option for option in family.options}
    given: dict[Option, int] = {}
    for part in parts:
        option = by_letter.get(part[:1])
        if option is None or not _is_number(part[1:]):
            known = ", ".join(f"{o.letter} and a number ({o.keyword})" for o in family.options) or "none"
            raise UsageError(f"the options of {family.name} are {known}, got {part!r}; {_remedy(family)}")
        if option in given:
            raise UsageError(f"an option is given once, got {option.keyword} again as {part!r}; leave one out")
        if int(part[1:]) < option.smallest:
            raise UsageError(f"the {option.keyword} is at least {option.smallest}, got {part!r}; {_remedy(family)}")
        given[option] = int(part[1:])
    options = {option: given.get(option, option.default) for option in family.options}
    needed = family.needs
    if needed is not None and options[needed] <= needed.default:
        raise UsageError(
            f"{family.name} needs {needed.keyword} above {needed.default}, got {options[needed]}; {_remedy(family)}"
        )
    return options


def _read_fused(family: Family, fused: list[str]) -> tuple[str, ...]:
    if fused and not family.is_fusible:
        raise UsageError(f"{family.name} takes no fused stages, got +{'+'.join(fused)}; leave them out")
    for position, name in enumerate(fused):
        if name not in FUSED:
            raise UsageError(f"the stages to fuse are +{', +'.join(FUSED)}, got +{name}; write one of these")
        if name in fused[:position]:
            raise UsageError(f"a stage is fused once, got +{name} twice; leave one out")
    return tuple(fused)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _remedy(family: Family) -> str:
    return f"write {family.form}, for example {family.example}"
