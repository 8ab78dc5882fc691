"""What decides the types and the expression of a node, so that equal nodes are looked at once.

A network has few kinds of nodes: the layers of a transformer differ in names and weights alone. The signature of a
node has its operator, its attributes and the types of its operands, and the values of those constants that were looked
at the first time; weights are not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tilewright.operators import Attribute, Node, TensorType

T = TypeVar("T")

# Of a constant that is larger, the bytes are not kept to be compared.
_LARGEST_VALUE_BYTES = 1 << 12


class Attributes(dict[str, Attribute]):
    """The attributes of nodes, which are not changed any more: what they are compared by is computed once."""

    __slots__ = ("_key",)

    @property
    def key(self) -> Hashable | None:
        try:
            return self._key
        except AttributeError:
            self._key: Hashable | None = _key_of(self)
            return self._key


def attributes_key(node: Node) -> Hashable | None:
    """The attributes to compare; None where one of them, such as a subgraph, has no equals."""
    attributes = node.attributes
    if not attributes:
        return ()
    return attributes.key if isinstance(attributes, Attributes) else _key_of(attributes)


def _key_of(attributes: Mapping[str, Attribute]) -> Hashable | None:
    parts = []
    for name, value in sorted(attributes.items()):
        part = _attribute_key(value)
        if part is None:
            return None
        parts.append((name, part))
    return tuple(parts)


def _attribute_key(value: Attribute) -> Hashable | None:
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject else (value.dtype.name, value.shape, value.tobytes())
    if isinstance(value, int | str | bytes):
        return type(value), value  # 1 and True are equal in Python
    if isinstance(value, float):
        return float, repr(value)  # so are 0.0 and -0.0
    if isinstance(value, list | tuple):
        if set(map(type, value)) == {int}:
            return int, tuple(value)
        parts = tuple(_attribute_key(item) for item in value)
        return None if None in parts else parts
    return None


class WatchedConstants(Mapping[str, npt.NDArray[np.generic]]):
    """Constants by name; `seen` are those whose values were asked for."""

    def __init__(self, constants: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self._constants = constants
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        value = self._constants[name]
        self.seen.add(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._constants

    def __iter__(self) -> Iterator[str]:
        return iter(self._constants)

    def __len__(self) -> int:
        return len(self._constants)


class BySignature(Generic[T]):
    """What was found for nodes, by their signatures."""

    def __init__(self) -> None:
        self._found: dict[Hashable, T] = {}
        self._seen: dict[Hashable, tuple[int, ...]] = {}
        """For nodes alike but for the values of constants: the operands whose values have been looked at."""

    def get(
        self,
        node: Node,
        types: Mapping[str, TensorType | None],
        constants: Mapping[str, npt.NDArray[np.generic]],
        find: Callable[[Mapping[str, npt.NDArray[np.generic]]], T],
        more: Hashable = None,
    ) -> T:
        """What `find` gives for the node, which it is asked for once for all nodes with its signature.

        `find` takes the constants from its argument. It depends on `more` and on nothing else of the node or of the
        network than its operator, attributes, types of operands, and constants among them.
        """
        attributes = attributes_key(node)
        if attributes is None:
            return find(constants)
        operands = tuple([(types.get(name), name in constants) if name else None for name in node.inputs])
        wanted = tuple(map(bool, node.outputs))
        alike = (node.domain, node.op, node.opset, attributes, operands, wanted, more)
        seen = self._seen.get(alike, ())
        if not _are_small(node, constants, seen):
            return find(constants)
        key = (alike, _values_key(node, constants, seen))
        if key in self._found:
            return self._found[key]
        watched = WatchedConstants(constants)
        found = find(watched)
        now = tuple(p for p, name in enumerate(node.inputs) if p in seen or name in watched.seen)
        if _are_small(node, constants, now):
            self._seen[alike] = now
            self._found[alike, _values_key(node, constants, now)] = found
        return found


def _are_small(node: Node, constants: Mapping[str, npt.NDArray[np.generic]], positions: tuple[int, ...]) -> bool:
    return sum([constants[node.inputs[p]].nbytes for p in positions]) <= _LARGEST_VALUE_BYTES


def _values_key(
    node: Node, constants: Mapping[str, npt.NDArray[np.generic]], positions: tuple[int, ...]
) -> tuple[bytes, ...]:
    return tuple([_value_key(constants[node.inputs[p]]) for p in positions])


def _value_key(value: npt.NDArray[np.generic]) -> bytes:
    """The elements of a value that may be compared; those of texts are addresses, which say nothing."""
    return repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
