"""NonMaxSuppression for the reference evaluator of ONNX, whose own compares boxes one by one and needs all operands."""

from __future__ import annotations

import numpy as np
from onnx.reference.op_run import OpRun


class NonMaxSuppression(OpRun):  # type: ignore[misc]
    """The boxes with the highest scores that do not overlap others of their class too much: [batch, class, box]."""

    def _run(
        self,
        boxes: np.ndarray,
        scores: np.ndarray,
        max_output_boxes_per_class: np.ndarray | None = None,
        iou_threshold: np.ndarray | None = None,
        score_threshold: np.ndarray | None = None,
        center_point_box: int = 0,
    ) -> tuple[np.ndarray]:
        most = int(_number(max_output_boxes_per_class) or 0)
        limit, least = _number(iou_threshold) or 0.0, _number(score_threshold)
        found = [np.zeros((0, 3), np.int64)]
        for batch, (corners, classes) in enumerate(zip(_corners(boxes, center_point_box), scores, strict=True)):
            for number, of_class in enumerate(classes):
                chosen = _chosen(corners, of_class, most, limit, least)
                found += [np.array([(batch, number, box) for box in chosen], np.int64).reshape(-1, 3)]
        return (np.concatenate(found),)


def _number(value: np.ndarray | None) -> float | None:
    return None if value is None or value.size == 0 else float(value.reshape(-1)[0])


def _corners(boxes: np.ndarray, center_point_box: int) -> np.ndarray:
    """The least and the largest places of boxes along both axes: [..., 4]."""
    if center_point_box:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        return np.concatenate([middle - half, middle + half], axis=-1)
    first, last = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, last), np.maximum(first, last)], axis=-1)


def _chosen(corners: np.ndarray, scores: np.ndarray, most: int, limit: float, least: float | None) -> list[int]:
    """The boxes of one class in the order of their scores; of equal ones the first comes first."""
    left = np.argsort(-scores, kind="stable")
    if least is not None:
        left = left[scores[left] > least]
    chosen: list[int] = []
    while len(left) and len(chosen) < most:
        best, left = left[0], left[1:]
        chosen.append(int(best))
        left = left[~(_overlap(corners[best], corners[left]) > limit)]
    return chosen


def _overlap(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The area that boxes have in common with one, by that of both."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    overlap: np.ndarray = np.divide(common, areas - common, out=np.zeros_like(common), where=common > 0)
    return overlap
