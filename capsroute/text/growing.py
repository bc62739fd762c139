"""Token ids that grow block by block: in memory while they are few, else in a temporary file that is memory-mapped.

The file has no name, so that nothing is left behind whatever happens.

>>> ids = GrowingIds()
>>> ids.add(np.array([2, 3], dtype=np.int32)); ids.add(np.array([4], dtype=np.int32))
>>> ids.finish().tolist()
[2, 3, 4]
"""

import mmap
import tempfile
from typing import IO

import numpy as np
from numpy.typing import NDArray

from capsroute.text.problems import CorpusError

IN_MEMORY = 64 << 20
"""Bytes above which ids go to a file."""

Ids = NDArray[np.int32]


class GrowingIds:
    """Collects ids; what `finish` gives is not written to any more."""

    def __init__(self) -> None:
        self._blocks: list[Ids] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def add(self, ids: Ids) -> None:
        """More ids behind those there are."""
        self._blocks.append(ids)
        self._size += ids.nbytes
        if self._size > IN_MEMORY:
            self._write()

    def finish(self) -> Ids:
        """All ids."""
        if self._file is None:
            return np.concatenate([*self._blocks, np.zeros(0, dtype=np.int32)])
        with self._file as file:  # the map outlives the file
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.int32)

    def _write(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0, prefix="capsroute-")  # noqa: SIM115  closed by finish
            for ids in self._blocks:
                rest = np.ascontiguousarray(ids).data.cast("B")
                while rest:  # an unbuffered write may take a part
                    rest = rest[self._file.write(rest) :]
        except OSError as error:
            if self._file is not None:
                self._file.close()
            raise CorpusError(
                f"token ids too many for memory cannot be kept in '{tempfile.gettempdir()}' "
                f"({error.strerror or error}): set TMPDIR to a folder with room."
            ) from error
        self._blocks = []
