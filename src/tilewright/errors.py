"""The errors tilewright raises. Each message states the rule, the value it got, and what to do."""

from __future__ import annotations


class TilewrightError(Exception):
    """Base of every error that tilewright raises on purpose."""


class ExpressionError(TilewrightError):
    """A tensor expression that cannot mean anything: wrong shape, type, index or name."""


class ScheduleError(TilewrightError):
    """An illegal schedule step; the message shows the loop nest as it stands."""


class LoweringError(TilewrightError):
    """A schedule that cannot be turned into a loop nest, or a loop nest that fails verification."""


class CodegenError(TilewrightError):
    """A loop nest or target that cannot be turned into native code."""


class KernelArgumentError(TilewrightError, ValueError):
    """A kernel was called with an argument of the wrong shape, type, layout or memory."""


class RecordFormatError(TilewrightError):
    """A record file that does not follow the format."""


class ModelError(TilewrightError):
    """A network that cannot be read: a broken file, a graph that does not hold together, or a shape left open."""


class OpenDimensionsError(ModelError):
    """A network that leaves dimensions of its inputs open, and no size is given for them."""


class UnsupportedOperatorError(TilewrightError):
    """A network operator that tilewright cannot compile."""


class ArtifactError(TilewrightError):
    """A file of a compiled model that cannot be read, written, or run on this machine."""


class NoValidCandidateError(TilewrightError):
    """Tuning ended without one valid candidate."""


class UsageError(TilewrightError):
    """The command line or an option was used wrongly."""
