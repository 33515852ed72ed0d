# SPDX-License-Identifier: Apache-2.0
"""The files of the live page, read once: nothing else of the disk can be asked for."""

from dataclasses import dataclass
from pathlib import Path

from xinfer_ros.errors import ConfigError

KINDS = {
    '.html': 'text/html',
    '.js': 'text/javascript',
    '.css': 'text/css',
    '.svg': 'image/svg+xml',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """
    One file.

    :param kind: media type
    """

    kind: str
    content: bytes


def page_files(folder: Path) -> dict[str, PageFile]:
    """
    Return every file of the page by its path, as ``/app.js``; ``/`` is index.html.

    :param folder: share/xinfer_ros/web
    :raises ConfigError: if there is no page in it
    """
    if not (folder / 'index.html').is_file():
        raise ConfigError(f'no live page in {folder}; `make setup` or colcon installs it')
    files = {
        f'/{path.relative_to(folder).as_posix()}': PageFile(
            kind=KINDS[path.suffix], content=path.read_bytes()
        )
        for path in sorted(folder.rglob('*'))
        if path.is_file() and path.suffix in KINDS
    }
    return files | {'/': files['/index.html']}
