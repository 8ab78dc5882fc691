"""Operators on sequences for the reference evaluator of ONNX.

Its own SequenceInsert takes the end for the beginning; its own SequenceMap knows one sequence beside tensors, or none,
and what its body reads from around it only by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class SequenceInsert(OpRun):  # type: ignore[misc]
    """A sequence with one tensor more, at its end if no place is given."""

    def _run(self, sequence: list[Any], tensor: np.ndarray, position: Any = None) -> tuple[list[Any]]:
        place = len(sequence) if position is None else int(np.asarray(position).item())
        if not -len(sequence) <= place <= len(sequence):
            raise ValueError(f"there is no place {place} in a sequence of {len(sequence)}")
        longer = list(sequence)
        longer.insert(place, tensor)
        return (longer,)


class SequenceMap(OpRun):  # type: ignore[misc]
    """What a body gives for each element of a sequence; of other sequences it takes the element at the same place."""

    body: ReferenceEvaluator

    def need_context(self) -> bool:
        return True

    def _run(
        self, sequence: list[Any], *others: Any, context: Mapping[str, Any], attributes: Any = None, **_: Any
    ) -> tuple[list[Any], ...]:
        results: list[list[Any]] = [[] for _ in self.body.output_names]
        for place, item in enumerate(sequence):
            operands = [item, *(other[place] if isinstance(other, list) else other for other in others)]
            feeds = {**context, **dict(zip(self.body.input_names, operands, strict=True))}
            outputs = self._run_body(feeds, attributes=attributes)
            for items, output in zip(results, outputs, strict=True):
                items.append(output)
        return tuple(results)
