"""What is to be closed when it is no longer needed."""

from __future__ import annotations

from typing import Self


class Closing:
    """A context manager of itself: the end of its block closes it."""

    def close(self) -> None:
        """Ends it; subclasses say what that is."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
