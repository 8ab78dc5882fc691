"""`--template` on the command line: a space from a file of the user's, which is run to read it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from tilewright.errors import UsageError

if TYPE_CHECKING:
    from tilewright.space import Template


def add_argument(parser: argparse.ArgumentParser, help_text: str) -> None:
    """`--template`, which may be given several times."""
    parser.add_argument("--template", action="append", default=[], metavar="[OPERATOR=]FILE.py:NAME", help=help_text)


def only_template(arguments: argparse.Namespace) -> str | None:
    """The template that is the whole space of a workload; None where there is none."""
    alone = [text for text in arguments.template if _operator(text) is None]
    if len(alone) > 1 or (alone and len(arguments.template) > 1):
        raise UsageError(
            f"--template {alone[0]} is the whole space of {arguments.workload}; give it alone, or give each as "
            "OPERATOR=FILE.py:NAME to search them with what is derived"
        )
    return alone[0] if alone else None


@contextmanager
def registered(given: Sequence[str]) -> Iterator[None]:
    """Inside, the templates that are given for operators are registered."""
    from tilewright.space import find_template, register_template, unregister_template

    with ExitStack() as undo:
        for text in given:
            operator = _operator(text)
            if operator is not None:
                template: Template = find_template(text.partition("=")[2])
                register_template(operator, template)
                undo.callback(unregister_template, operator, template)
        yield


def check_operators(arguments: argparse.Namespace) -> None:
    """A model has tasks of many operators: each of its templates says for which it is."""
    for text in arguments.template:
        if _operator(text) is None:
            raise UsageError(
                f"--template is {text}, and {arguments.workload} is a model; say for which operator it is, such as "
                f"conv2d={text}"
            )


def _operator(text: str) -> str | None:
    """What stands before the equals sign.

    >>> _operator("conv2d=a.py:b"), _operator("a.py:b")
    ('conv2d', None)
    """
    found = re.match(r"(\w+)=", text)
    return None if found is None else found[1]
