"""Sockets: where a room takes what only a room after it can give, and which it must not import.

`tilewright/__init__.py` plugs in names; what they name is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module

_PLUGS: dict[str, str] = {}


def plug(socket: str, name: str) -> None:
    """Give the socket what `name`, such as "tilewright.network:tune_network", says."""
    _PLUGS[socket] = name


def plugged(socket: str) -> object:
    """What the socket was given; None if nothing was.

    >>> plugged("socket.of.nobody") is None
    True
    """
    if socket not in _PLUGS:
        return None
    module, _, attribute = _PLUGS[socket].partition(":")
    found: object = getattr(import_module(module), attribute)
    return found
