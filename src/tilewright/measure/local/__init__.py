"""Measuring on this machine: builder processes compile candidates, one runner process times them and checks them.

`LocalMeasurer` is where to start. `builder` and `runner` are the two halves as the tuner sees them, `builder_process`
and `runner_process` what goes on in the processes, `fork_server` where these come from.
"""

from tilewright.measure.local.measurer import LocalMeasurer

__all__ = ["LocalMeasurer"]
