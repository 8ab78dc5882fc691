"""Loop and Scan for the reference evaluator of ONNX, in the place of its own.

Its own Loop stops at once without a condition and stacks what the iterations give along the wrong axis; its own Scan
goes through the first axis forwards only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from onnx import TypeProto
from onnx.helper import tensor_dtype_to_np_dtype
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class _Iteration(OpRun):  # type: ignore[misc]
    """A body that runs again and again; it also reads the values around it."""

    body: ReferenceEvaluator

    def need_context(self) -> bool:
        return True

    def _step(self, context: Mapping[str, Any], arguments: Sequence[Any], attributes: Any) -> list[Any]:
        feeds = dict(context)
        feeds.update(zip(self.body.input_names, arguments, strict=True))
        outputs: list[Any] = self._run_body(feeds, attributes=attributes)
        return outputs

    def _stack(self, position: int, items: Sequence[np.ndarray], axis: int = 0, *, backwards: bool = False) -> Any:
        """What output `position` of the body was in each iteration, along a new axis."""
        if not items:
            return _nothing(self.body.output_types[position])
        return np.stack(list(reversed(items)) if backwards else list(items), axis)


class Loop(_Iteration):
    """Runs its body up to `count_limit` times, while its condition holds."""

    def _run(
        self,
        count_limit: np.ndarray | None,
        condition: np.ndarray | None,
        *carried: Any,
        context: Mapping[str, Any],
        attributes: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        states = list(carried)
        num_states = len(states)
        collected: list[list[np.ndarray]] = [[] for _ in self.body.output_names[1 + num_states :]]
        goes_on = True if condition is None else bool(condition)
        # A number may come with an axis of one: onnxruntime takes it, too.
        most = None if count_limit is None else int(np.asarray(count_limit).item())
        for iteration in count():
            if not goes_on or (most is not None and iteration >= most):
                break
            arguments = [np.array(iteration, np.int64), np.array(goes_on), *states]
            condition, *rest = self._step(context, arguments, attributes)
            goes_on = bool(condition)
            states = rest[:num_states]
            for items, item in zip(collected, rest[num_states:], strict=True):
                items.append(item)
        return (*states, *(self._stack(1 + num_states + i, items) for i, items in enumerate(collected)))


class Scan(_Iteration):
    """Runs its body for each slice of its last inputs, along any axis, forwards or backwards."""

    def _run(
        self,
        *inputs: Any,
        context: Mapping[str, Any],
        num_scan_inputs: int,
        scan_input_axes: Sequence[int] | None = None,
        scan_input_directions: Sequence[int] | None = None,
        scan_output_axes: Sequence[int] | None = None,
        scan_output_directions: Sequence[int] | None = None,
        attributes: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        num_states = len(inputs) - num_scan_inputs
        states, scanned = list(inputs[:num_states]), inputs[num_states:]
        slices = []
        for i, array in enumerate(scanned):
            rows = np.moveaxis(array, _at(scan_input_axes, i), 0)
            slices.append(rows[::-1] if _at(scan_input_directions, i) else rows)
        collected: list[list[np.ndarray]] = [[] for _ in self.body.output_names[num_states:]]
        for rows_now in zip(*slices, strict=True):
            outputs = self._step(context, [*states, *rows_now], attributes)
            states = outputs[:num_states]
            for items, item in zip(collected, outputs[num_states:], strict=True):
                items.append(item)
        stacked = [
            self._stack(num_states + i, items, _at(scan_output_axes, i), backwards=bool(_at(scan_output_directions, i)))
            for i, items in enumerate(collected)
        ]
        return (*states, *stacked)


def _at(items: Sequence[int] | None, position: int) -> int:
    return 0 if items is None or position >= len(items) else items[position]


def _nothing(declared: TypeProto) -> np.ndarray:
    """What no iteration gives: as much of its shape as the body declares, behind an axis of zero."""
    tensor = declared.tensor_type
    dtype = tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.dtype(np.float32)
    return np.empty((0, *(dim.dim_value for dim in tensor.shape.dim)), dtype)
