# SPDX-License-Identifier: Apache-2.0
"""Tokenizers from local files; nothing is ever fetched from a network."""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.folder import SETTINGS_FILE
from xinfer_ros.models.tokenizer import Tokenizer

JSON_FILE = 'tokenizer.json'
MODEL_FILE = 'tokenizer.model'
_CONFIG_FILE = 'tokenizer_config.json'
_BEGIN = '<bos>'


class JsonTokenizer:
    """
    A ``tokenizer.json``, as the hub's fast tokenizers are stored.

    The begin token is put first and nothing else is added, whatever the file says of special
    tokens: that is how the published π0.5 is asked.

    :param path: the file
    :raises ConfigError: if it can not be read, or the library for it is not installed
    """

    def __init__(self, path: Path) -> None:
        library = _library('tokenizers', path)
        try:
            self._tokenizer = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise ConfigError(f'{path} is no readable tokenizer: {error}') from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        begin = _begin_token(path.with_name(_CONFIG_FILE))
        self._begin_id = self._tokenizer.token_to_id(begin)
        if self._begin_id is None:
            raise ConfigError(f'{path} has no begin-of-sequence token {begin}')

    @property
    def vocabulary(self) -> int:
        """Return the number of ids."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, begin-of-sequence first."""
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [self._begin_id, *ids]


class SentencePieceTokenizer:
    """
    A ``tokenizer.model`` of SentencePiece.

    :param path: the file
    :raises ConfigError: if it can not be read, or the library for it is not installed
    """

    def __init__(self, path: Path) -> None:
        library = _library('sentencepiece', path)
        try:
            self._processor = library.SentencePieceProcessor(model_file=str(path))
        except Exception as error:  # the library raises RuntimeError and OSError
            raise ConfigError(f'{path} is no readable tokenizer: {error}') from error
        if self._processor.bos_id() < 0:
            raise ConfigError(f'{path} has no begin-of-sequence token')

    @property
    def vocabulary(self) -> int:
        """Return the number of ids."""
        return int(self._processor.vocab_size())

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``, begin-of-sequence first."""
        return [int(token) for token in self._processor.encode(text, add_bos=True)]


def tokenizer_file(folder: Path, places: Sequence[str]) -> Path | None:
    """
    Return the tokenizer's file of a checkpoint, None if there is none.

    :param folder: of the checkpoint
    :param places: folders in it to look into first, relative; then ``tokenizer/`` and itself
    :raises ConfigError: if a place lies outside of the folder
    """
    for place in (*places, 'tokenizer', '.'):
        inside = (folder / place).resolve()
        if not inside.is_relative_to(folder.resolve()):
            raise ConfigError(f'{folder}: the tokenizer is said to lie in {place}, outside of it')
        for name in (JSON_FILE, MODEL_FILE):
            if (inside / name).is_file():
                return inside / name
    return None


def folder_tokenizer(folder: Path, places: Sequence[str], published: str) -> tuple[Tokenizer, str]:
    """
    Return the tokenizer of a checkpoint and where it was found.

    :param published: the name under which it is published, for the error text
    :raises ConfigError: if the folder has none, or it can not be read
    """
    path = tokenizer_file(folder, places)
    if path is None:
        raise ConfigError(
            f'{folder} has no tokenizer, and none is fetched from a network; put {JSON_FILE} or '
            f'{MODEL_FILE} of {published} into {folder / "tokenizer"}; for random weights write '
            f'{{"tokenizer": "bytes"}} into {folder / SETTINGS_FILE}'
        )
    where = str(path.relative_to(folder.resolve()))
    if path.name == JSON_FILE:
        return JsonTokenizer(path), where
    return SentencePieceTokenizer(path), where


def _library(name: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise ConfigError(
            f'{path} needs the package {name}: pip install {name}, or "xinfer-ros[server]"'
        ) from None


def _begin_token(path: Path) -> str:
    """Return the begin token that a tokenizer's configuration names; Gemma's if none does."""
    try:
        token = json.loads(path.read_text()).get('bos_token')
    except FileNotFoundError:
        return _BEGIN
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(f'{path} is no readable JSON object: {error}') from error
    if isinstance(token, dict):
        token = token.get('content')
    return token if isinstance(token, str) else _BEGIN
