"""Memory of Python's objects, held in its place."""

from __future__ import annotations

import ctypes
import mmap
import operator
from typing import Any


def pin(memory: Any) -> tuple[int, int, object, memoryview]:
    """The address and length of a buffer, something that keeps it where it is, and a view of it.

    ``memory`` is an object with a writable, contiguous buffer (a bytearray, a NumPy array, an mmap), or a number: that many new bytes,
    which begin on a page.
    """
    try:
        length = operator.index(memory)
    except TypeError:
        pass
    else:
        if length <= 0:
            raise ValueError(f"memory: {length} bytes cannot be registered")
        try:
            memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, OverflowError) as error:
            raise MemoryError(f"memory: there are no {length} bytes: {error}") from None
    try:
        view = memoryview(memory)
    except TypeError:
        raise TypeError(
            f"memory: a number of bytes or an object with a buffer is expected, not {type(memory).__name__}"
        ) from None
    except ValueError as error:
        # Closed, or of a type that buffers do not know (NumPy's times: `array.view("i8")` has the same bytes).
        raise ValueError(f"memory: the buffer of this {type(memory).__name__} cannot be had: {error}") from None
    wrong = None
    if view.readonly:
        wrong = "read-only"
    elif not view.c_contiguous:
        wrong = "not contiguous, row by row"
    elif "O" in view.format:
        wrong = "of Python's objects, not of plain bytes"
    if wrong:
        raise ValueError(
            f"memory: the buffer of this {type(memory).__name__} is {wrong}; peers may write to it, "
            "so a writable, contiguous one is expected"
        )
    if view.nbytes == 0:
        raise ValueError("memory: 0 bytes cannot be registered")
    view = view.cast("B")
    # An export of its own: whatever becomes of `view`, the object cannot be resized while this is there.
    keeper = (ctypes.c_char * view.nbytes).from_buffer(view)
    return ctypes.addressof(keeper), view.nbytes, keeper, view
