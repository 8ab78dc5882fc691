"""A line of a record file as a JSON object."""

from __future__ import annotations

import json
from reprlib import repr as shown
from typing import Any

from tilewright.errors import RecordFormatError

MAX_LINE_BYTES = 1 << 22
"""A line is a few thousand bytes long; of a longer one than this no more is read."""


class NotJsonError(RecordFormatError):
    """A line that is not JSON, as one that is not whole."""


def json_object(text: str) -> dict[str, Any]:
    """The object in a line; RecordFormatError if it holds something else, NotJsonError if it is no JSON."""
    try:
        data = json.loads(text)
    except RecursionError:
        raise RecordFormatError("the line is nested too deeply; remove the line, or restore the file") from None
    except ValueError as error:
        raise NotJsonError(f"the line is not JSON ({error}); remove the line, or restore the file") from error
    if not isinstance(data, dict):
        raise RecordFormatError(f"a line is a JSON object, got {shown(data)}; remove the line, or restore the file")
    return data
