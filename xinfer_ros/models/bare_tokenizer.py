# SPDX-License-Identifier: Apache-2.0
"""A ``tokenizer.json`` that is taken as it is, for families whose prompts have no begin token."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.tokenizer_files import JSON_FILE, tokenizer_file


class BareTokenizer:
    """
    A ``tokenizer.json``; words that it marks as special are one token each.

    :param path: the file
    :raises ConfigError: if it can not be read, or the library for it is not installed
    """

    def __init__(self, path: Path) -> None:
        try:
            library = import_module('tokenizers')
        except ModuleNotFoundError:
            raise ConfigError(
                f'{path} needs the package tokenizers: pip install tokenizers, or '
                '"xinfer-ros[server]"'
            ) from None
        try:
            self._tokenizer = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise ConfigError(f'{path} is no readable tokenizer: {error}') from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    @property
    def vocabulary(self) -> int:
        """Return the number of ids."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, with what the file itself puts around it."""
        return [int(token) for token in self._tokenizer.encode(text).ids]


def bare_tokenizer(
    folder: Path, places: Sequence[str], published: str
) -> tuple[BareTokenizer, str]:
    """
    Return the tokenizer of a checkpoint and where it was found.

    :param places: folders in it to look into first, relative
    :param published: the name under which it is published, for the error text
    :raises ConfigError: if the folder has none, or it can not be read
    """
    path = tokenizer_file(folder, places)
    if path is None or path.name != JSON_FILE:
        raise ConfigError(
            f'{folder} has no {JSON_FILE}, and none is fetched from a network; put that of '
            f'{published} into {folder / "tokenizer"}'
        )
    return BareTokenizer(path), str(path.relative_to(folder.resolve()))
