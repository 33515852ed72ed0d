# SPDX-License-Identifier: Apache-2.0
"""Which part of an earlier prompt a new one repeats: tells a rewritten prefix from an eviction."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

BLOCK_CHARACTERS = 256  # some 64 tokens
PICTURE_CHARACTERS = 4000  # what a picture weighs: its bytes say nothing of its tokens
_PICTURE_KEYS = ('image_url', 'input_image', 'image', 'input_audio', 'source')


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """
    A prompt as hashes of its parts, in order.

    :param hashes: of each part
    :param weights: about how long each is [characters]
    """

    hashes: tuple[bytes, ...] = ()
    weights: tuple[int, ...] = ()

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> 'Fingerprint':
        """
        Return the fingerprint of a call.

        :param body: of chat/completions, responses, messages or completions, in JSON
        """
        hashes, weights = [], []
        for text, weight in _parts(body):
            hashes.append(blake2b(text.encode('utf-8', 'replace'), digest_size=8).digest())
            weights.append(weight)
        return cls(hashes=tuple(hashes), weights=tuple(weights))

    @property
    def size(self) -> int:
        """Return about how long the prompt is [characters]."""
        return sum(self.weights)

    def kept_share(self, later: 'Fingerprint') -> float:
        """
        Return the share of this prompt that a later one begins with, 0 to 1; 1 if it is empty.

        The end of a prompt may be part of a block that has grown: then it is taken for kept.
        """
        whole, kept, last = self.size, 0, len(self.hashes) - 1
        for index, (mine, weight) in enumerate(zip(self.hashes, self.weights, strict=True)):
            grown = index == last and weight < BLOCK_CHARACTERS
            if index >= len(later.hashes) or (later.hashes[index] != mine and not grown):
                break
            kept += weight
        return kept / whole if whole else 1.0


def _parts(body: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield what an LLM server reads, in the order in which templates put it."""
    for key in ('tools', 'functions'):
        if body.get(key):
            yield from _text(json.dumps(body[key], sort_keys=True))
    for key in ('system', 'instructions'):
        if body.get(key):
            yield from _content(body[key])
    if body.get('previous_response_id'):
        yield from _text(str(body['previous_response_id']))
    for key in ('messages', 'input', 'prompt'):
        if body.get(key) is not None:
            yield from _messages(body[key])


def _messages(messages: Any) -> Iterator[tuple[str, int]]:
    if not isinstance(messages, list):
        yield from _content(messages)
        return
    if messages and isinstance(messages[0], int):  # tokens
        yield from _text(json.dumps(messages)[1:-1])
        return
    for message in messages:
        if not isinstance(message, dict):
            yield from _content(message)
            continue
        facts = {key: value for key, value in message.items() if key != 'content'}
        yield from _text(json.dumps(facts, sort_keys=True))
        if message.get('content') is not None:
            yield from _content(message['content'])


def _content(content: Any) -> Iterator[tuple[str, int]]:
    if isinstance(content, str):
        yield from _text(content)
    elif isinstance(content, list) and content and isinstance(content[0], dict):
        for part in content:
            text = part.get('text') if isinstance(part, dict) else None
            if isinstance(text, str):
                yield from _text(text)
            else:
                is_picture = isinstance(part, dict) and any(key in part for key in _PICTURE_KEYS)
                written = json.dumps(part, sort_keys=True)
                yield written, PICTURE_CHARACTERS if is_picture else len(written)
    else:
        yield from _text(json.dumps(content))


def _text(text: str) -> Iterator[tuple[str, int]]:
    for begin in range(0, len(text), BLOCK_CHARACTERS):
        block = text[begin : begin + BLOCK_CHARACTERS]
        yield block, len(block)
