"""What Python and NumPy ask of numbers and arrays, and a node cannot answer while it is being built.

Each question ends in an error that says what to write instead.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tilewright.errors import ExpressionError

# Functions of NumPy that are called otherwise here.
_OTHER_NAMES = {
    "absolute": "abs",
    "fabs": "abs",
    "float_power": "pow",
    "fmax": "maximum",
    "fmin": "minimum",
    "invert": "logical_not",
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


class Unevaluated:
    """The base of expressions and tensors: neither a number nor a sequence."""

    __slots__ = ()

    def __float__(self) -> NoReturn:
        raise ExpressionError(
            f"{self._described()} has no value while it is being built, which float, int, range and the functions of "
            "math ask for; use te.exp, te.floor and the like for functions, te.cast for another type"
        )

    __int__ = __index__ = __complex__ = __float__

    def __len__(self) -> NoReturn:
        raise ExpressionError(f"{self._described()} has no len; sizes are in the shape of a tensor, as in A.shape[0]")

    def __iter__(self) -> NoReturn:
        raise ExpressionError(
            f"{self._described()} cannot be iterated; te.compute goes over elements, te.reduce_axis makes an axis to "
            "sum over, and indices are given together, as in A[i, j]"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise ExpressionError(f"{self._described()} cannot be given to np.{name}; {_remedy(ufunc.__name__, method)}")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise ExpressionError(
            f"{self._described()} cannot become an array of NumPy while it is being built; use the functions of te, "
            "such as te.select for np.where"
        )

    def _described(self) -> str:
        raise NotImplementedError


def _remedy(function: str, method: str) -> str:
    from tilewright import te

    if method != "__call__":
        return f"use te.{_REDUCTIONS.get(function, 'sum')}(x, axis=k) with k = te.reduce_axis(extent)"
    name = _OTHER_NAMES.get(function, function)
    if name in te.ELEMENT_FUNCTIONS:
        return f"use te.{name} of an element, as in te.compute(A.shape, lambda i: te.{name}(...))"
    return f"write it with what te has: + - * / **, {', '.join(te.ELEMENT_FUNCTIONS)}"
