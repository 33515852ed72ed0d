# SPDX-License-Identifier: Apache-2.0
"""Tokenizers from the files of a folder."""

import io
import json
import sys
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.tokenizer_files import (
    JsonTokenizer,
    SentencePieceTokenizer,
    folder_tokenizer,
    tokenizer_file,
)

tokenizers = pytest.importorskip('tokenizers')
sentencepiece = pytest.importorskip('sentencepiece')

_WORDS = ('pick', 'up', 'the', 'cube', 'State', 'Action', 'Task')


def write_json_tokenizer(path: Path, begin: str = '<bos>') -> None:
    """Write a ``tokenizer.json`` that knows a few words and asks for padding and an end."""
    ids = {word: index for index, word in enumerate(('<pad>', '<eos>', begin, '<unk>', *_WORDS))}
    model = tokenizers.models.WordLevel(ids, unk_token='<unk>')
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f'{begin} $A <eos>', special_tokens=[(begin, 2), ('<eos>', 1)]
    )
    tokenizer.enable_padding(length=64)
    tokenizer.enable_truncation(max_length=3)
    tokenizer.save(str(path))


def write_sentencepiece(path: Path) -> None:
    """Train a tiny SentencePiece model."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(['pick up the cube', 'State: 0 1 2 3; Action:'] * 20),
        model_writer=written,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path.write_bytes(written.getvalue())


def test_json_file_gives_the_begin_token_and_the_words_alone(tmp_path: Path) -> None:
    """No end, no padding, nothing cut, whatever the file asks for: as π0.5 was trained."""
    write_json_tokenizer(tmp_path / 'tokenizer.json')
    tokenizer = JsonTokenizer(tmp_path / 'tokenizer.json')
    assert tokenizer.encode('pick up the cube') == [2, 4, 5, 6, 7]
    assert tokenizer.vocabulary == 4 + len(_WORDS)


@pytest.mark.parametrize('token', ['<s>', {'content': '<s>', 'lstrip': False}])
def test_begin_token_is_the_one_that_the_configuration_names(
    token: object, tmp_path: Path
) -> None:
    write_json_tokenizer(tmp_path / 'tokenizer.json', begin='<s>')
    with pytest.raises(ConfigError, match='no begin-of-sequence token <bos>'):
        JsonTokenizer(tmp_path / 'tokenizer.json')
    (tmp_path / 'tokenizer_config.json').write_text(json.dumps({'bos_token': token}))
    assert JsonTokenizer(tmp_path / 'tokenizer.json').encode('up') == [2, 5]


def test_sentencepiece_file_gives_the_begin_token_first(tmp_path: Path) -> None:
    write_sentencepiece(tmp_path / 'tokenizer.model')
    tokenizer = SentencePieceTokenizer(tmp_path / 'tokenizer.model')
    library = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / 'tokenizer.model'))
    ids = tokenizer.encode('pick up the cube')
    assert ids == [library.bos_id(), *library.encode('pick up the cube')]
    assert library.decode(ids) == 'pick up the cube'
    assert max(ids) < tokenizer.vocabulary


@pytest.mark.parametrize('name', ['tokenizer.json', 'tokenizer.model'])
def test_unreadable_file_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b'no tokenizer')
    with pytest.raises(ConfigError, match=f'{name} is no readable tokenizer'):
        folder_tokenizer(tmp_path, (), 'the published one')


def test_file_is_looked_for_where_it_was_stored_then_in_tokenizer_then_in_the_folder(
    tmp_path: Path,
) -> None:
    assert tokenizer_file(tmp_path, ('stored',)) is None
    found = []
    for place in ('.', 'tokenizer', 'stored'):
        (tmp_path / place).mkdir(exist_ok=True)
        write_json_tokenizer(tmp_path / place / 'tokenizer.json')
        path = tokenizer_file(tmp_path, ('stored',))
        assert path is not None
        found.append(path.parent.relative_to(tmp_path).as_posix())
    assert found == ['.', 'tokenizer', 'stored']


def test_place_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='outside of it'):
        tokenizer_file(tmp_path, ('../elsewhere',))


def test_folder_without_a_tokenizer_says_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r'put tokenizer\.json or tokenizer\.model of its/name into .*/tokenizer'
    ):
        folder_tokenizer(tmp_path, (), 'its/name')


@pytest.mark.parametrize(
    ('library', 'name'), [('tokenizers', 'tokenizer.json'), ('sentencepiece', 'tokenizer.model')]
)
def test_library_that_is_not_installed_is_named(
    library: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=f'needs the package {library}: pip install {library}'):
        folder_tokenizer(tmp_path, (), 'the published one')
