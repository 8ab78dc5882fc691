"""STFT for the reference evaluator of ONNX, whose own wants a window and takes no signal without an axis of one."""

from __future__ import annotations

import numpy as np
from onnx.reference.op_run import OpRun


class STFT(OpRun):  # type: ignore[misc]
    """The Fourier transforms of frames of a signal, as many as fit in whole."""

    def _run(
        self,
        signal: np.ndarray,
        frame_step: np.ndarray,
        window: np.ndarray | None = None,
        frame_length: np.ndarray | None = None,
        onesided: int | None = None,
    ) -> tuple[np.ndarray]:
        if frame_length is not None:
            length = int(np.asarray(frame_length).item())
        elif window is not None:
            length = len(window)
        else:
            raise ValueError("neither a window nor the length of a frame is given")
        step = int(np.asarray(frame_step).item())
        if not 0 < length <= signal.shape[1] or step < 1:
            raise ValueError(f"frames of {length} elements, {step} apart, do not fit in {signal.shape[1]}")
        is_complex = signal.ndim == 3 and signal.shape[2] == 2
        values = signal[..., 0] + 1j * signal[..., 1] if is_complex else signal.reshape(signal.shape[:2])
        frames = np.lib.stride_tricks.sliding_window_view(values, length, axis=1)[:, ::step]
        if window is not None:
            frames = frames * window
        is_half = onesided != 0 and not is_complex
        found = np.fft.rfft(frames) if is_half else np.fft.fft(frames)
        return (np.stack([found.real, found.imag], axis=-1).astype(signal.dtype),)
