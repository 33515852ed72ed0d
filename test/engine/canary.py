# SPDX-License-Identifier: Apache-2.0
"""Payloads that leave a file behind if anything that they are given to executes them."""

import pickle
from pathlib import Path


class _Touch:
    """What a pickle that is loaded would do."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self._path,))


class Canary:
    """
    A file that must never appear.

    :param path: of the file
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.payloads = (
            pickle.dumps(_Touch(path)),
            f'!!python/object/apply:os.system ["touch {path}"]'.encode(),
            f'__import__("os").system("touch {path}")'.encode(),
        )

    def check(self) -> None:
        """See that it has not been made, and that it would have been."""
        assert not self._path.exists()
        pickle.loads(self.payloads[0])
        assert self._path.exists()
