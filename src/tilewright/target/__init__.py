"""What programs are compiled for: `Target`, the processors that it knows, and how many threads a program may use."""

from tilewright.target.target import Target
from tilewright.target.threads import MAX_THREADS, checked_threads, default_threads

__all__ = ["MAX_THREADS", "Target", "checked_threads", "default_threads"]
