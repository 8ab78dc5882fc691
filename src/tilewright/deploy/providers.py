"""What callers of onnxruntime give a session besides the model: execution providers and session options."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tilewright.errors import UsageError

CPU = "CPUExecutionProvider"

Provider: TypeAlias = "str | tuple[str, Mapping[str, Any]]"


def check_providers(providers: Sequence[Provider] | None, provider_options: Sequence[Mapping[str, Any]] | None) -> None:
    """The processor is among the providers; those before it are warned of, as onnxruntime does, and passed over."""
    if provider_options is not None and len(provider_options) != len(providers or ()):
        raise UsageError(
            f"provider_options are for each of the providers; got {len(provider_options)} for {len(providers or ())}"
        )
    if providers is None:
        return
    if isinstance(providers, str) or not isinstance(providers, Sequence):
        raise UsageError(f"providers is {providers!r}; give a list of names, such as [{CPU!r}]")
    names = [_name(provider) for provider in providers]
    if names and CPU not in names:
        raise UsageError(
            f"providers is {names}; tilewright runs on the processor alone: add {CPU!r}, or leave them out"
        )
    others = [name for name in names if name != CPU]
    if others:
        warnings.warn(f"tilewright runs on the processor alone: {', '.join(others)} is not available", stacklevel=3)


def threads_of(sess_options: object) -> int | None:
    """How many threads the options of onnxruntime ask for; None for the default, which is 0 there.

    Its other options tune how it runs a graph, and mean nothing here.
    """
    if sess_options is None:
        return None
    asked = getattr(sess_options, "intra_op_num_threads", None)
    if not isinstance(asked, int):
        raise UsageError(
            f"sess_options is {type(sess_options).__name__}; give an onnxruntime.SessionOptions, or threads=N instead"
        )
    return asked or None


def _name(provider: object) -> str:
    if isinstance(provider, tuple) and len(provider) == 2 and isinstance(provider[1], Mapping):
        provider = provider[0]
    if not isinstance(provider, str):
        raise UsageError(f"a provider is a name, or a name and its options, such as {CPU!r}; got {provider!r}")
    return provider
