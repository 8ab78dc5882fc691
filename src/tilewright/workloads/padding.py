"""Zero padding as a stage of its own, and the size of what a window leaves."""

from __future__ import annotations

from tilewright import te
from tilewright.errors import UsageError
from tilewright.te import Expr, Tensor


def window_output(what: str, size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many positions a window has along one dimension; `what` names it in the error."""
    reach = (kernel - 1) * dilation + 1
    if size + 2 * padding < reach:
        raise UsageError(
            f"a kernel must fit into the padded input: along the {what} it reaches over {reach} of "
            f"{size} + 2*{padding}; make the kernel or its dilation smaller, or the padding larger"
        )
    return (size + 2 * padding - reach) // stride + 1


def window_position(output: Expr, tap: Expr, stride: int, dilation: int = 1) -> Expr:
    """Where the window of an output position reads for a tap of the kernel; a factor of 1 is not written."""
    return (output if stride == 1 else output * stride) + (tap if dilation == 1 else tap * dilation)


def inside(position: Expr, size: int, padding: int) -> Expr:
    """Whether a position in the padded tensor lies in the tensor that was padded."""
    return (position >= padding) & (position < size + padding)


def pad1d(X: Tensor, padding: int) -> Tensor:
    """X[n, x, c] with zeros around x."""
    if padding == 0:
        return X
    batch, width, channels = X.shape
    return te.compute(
        (batch, width + 2 * padding, channels),
        lambda n, x, c: te.select(inside(x, width, padding), X[n, x - padding, c], 0.0),
        "padded",
    )


def pad2d(X: Tensor, padding: int) -> Tensor:
    """X[n, y, x, c] with zeros around y and x."""
    if padding == 0:
        return X
    batch, height, width, channels = X.shape
    return te.compute(
        (batch, height + 2 * padding, width + 2 * padding, channels),
        lambda n, y, x, c: te.select(
            inside(y, height, padding) & inside(x, width, padding), X[n, y - padding, x - padding, c], 0.0
        ),
        "padded",
    )
