"""Encoders by name, and as JSON: what a model's file says of the encoder that the model reads."""

from __future__ import annotations

from reprlib import repr as shown
from typing import Any

from tilewright.errors import UsageError
from tilewright.features.curves import CurveEncoder
from tilewright.features.encoders import (
    ChoicesEncoder,
    Encoder,
    EstimateEncoder,
    HardwareEncoder,
    JoinedEncoder,
    PublishedStatementEncoder,
    StatementEncoder,
)
from tilewright.features.hierarchy import HierarchyEncoder, ProgramEncoder
from tilewright.features.knobs import KnobsEncoder
from tilewright.features.loop_context import LoopContextEncoder
from tilewright.features.loop_tree import LoopTreeEncoder
from tilewright.features.primitive_encoders import FlatPrimitiveEncoder, PrimitiveEncoder, PublishedPrimitiveEncoder

_ENCODERS: dict[str, type[Encoder]] = {
    encoder.name: encoder
    for encoder in (
        StatementEncoder,
        PublishedStatementEncoder,
        EstimateEncoder,
        ChoicesEncoder,
        KnobsEncoder,
        PrimitiveEncoder,
        PublishedPrimitiveEncoder,
        FlatPrimitiveEncoder,
        LoopTreeEncoder,
        LoopContextEncoder,
        CurveEncoder,
        HierarchyEncoder,
        ProgramEncoder,
        HardwareEncoder,
    )
}
_JOINED = "+"


def encoder_names() -> list[str]:
    """The names that `create_encoder` takes."""
    return list(_ENCODERS)


def create_encoder(name: object, /, **options: Any) -> Encoder:
    """A new encoder by name; the names of several, with + between them, give all their rows.

    >>> create_encoder("primitives", length=25)
    PrimitiveEncoder(length=25, num_names=20, num_numbers=12)
    >>> create_encoder("statements+hardware")
    JoinedEncoder(parts=(StatementEncoder(), HardwareEncoder()))
    """
    if isinstance(name, str) and _JOINED in name and not options:
        return JoinedEncoder(tuple(map(create_encoder, name.split(_JOINED))))
    if not isinstance(name, str) or name not in _ENCODERS:
        raise UsageError(f"an encoder is one of {', '.join(_ENCODERS)}, got {shown(name)}")
    known = _ENCODERS[name]().options
    unknown = [option for option in options if option not in known]
    if unknown:
        raise UsageError(
            f"the options of the encoder {name} are {', '.join(known) or 'none'}; got {', '.join(unknown)}"
        )
    return _ENCODERS[name](**options)


def encoder_to_json(encoder: Encoder) -> dict[str, Any]:
    """The encoder's name and options, from which `encoder_from_json` makes an equal one."""
    if isinstance(encoder, JoinedEncoder):
        return {"joined": [encoder_to_json(part) for part in encoder.parts]}
    return {"name": encoder.name, "options": encoder.options}


def encoder_from_json(data: object) -> Encoder:
    """The encoder that `encoder_to_json` wrote; UsageError where it is none."""
    if isinstance(data, dict) and isinstance(data.get("joined"), list):
        return JoinedEncoder(tuple(map(_single_from_json, data["joined"])))
    return _single_from_json(data)


def _single_from_json(data: object) -> Encoder:
    if not isinstance(data, dict) or not isinstance(data.get("options"), dict):
        raise UsageError(f"an encoder in a file has a name and options, got {shown(data)}; save the model again")
    return create_encoder(data.get("name"), **data["options"])
