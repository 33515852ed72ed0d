# SPDX-License-Identifier: Apache-2.0
"""Reads what a turn has used from its answer, as it passes by."""

import json
import re
from typing import Any

from xinfer_ros.brain.controller import TurnUsage

MOST_BYTES = 8 << 20  # of an answer in one piece, or of one event; a longer one tells no usage
_EVENT_END = re.compile(rb'(?<=\n)\r?\n')


def usage_of(facts: Any) -> TurnUsage | None:
    """
    Return the usage that an answer or event tells; its prompt is 0 if only the output is told.

    :param facts: of chat/completions, completions, responses or messages, in JSON
    """
    if not isinstance(facts, dict):
        return None
    holder = facts
    for key in ('response', 'message'):
        if isinstance(facts.get(key), dict):
            holder = facts[key]
    usage = holder.get('usage')
    if not isinstance(usage, dict):
        return None
    prompt = _number(usage, 'prompt_tokens', 'input_tokens')
    output = _number(usage, 'completion_tokens', 'output_tokens')
    if prompt is None and output is None:
        return None
    prompt = prompt or 0
    cached = _number(usage, 'cache_read_input_tokens')
    if cached is not None:  # Anthropic counts cached tokens apart from the others
        prompt += cached + (_number(usage, 'cache_creation_input_tokens') or 0)
    for key in ('prompt_tokens_details', 'input_tokens_details'):
        if isinstance(usage.get(key), dict):
            cached = _number(usage[key], 'cached_tokens')
    return TurnUsage(
        prompt_tokens=prompt,
        cached_tokens=None if cached is None else min(cached, prompt),
        output_tokens=output or 0,
    )


def _number(usage: dict[str, Any], *keys: str) -> int | None:
    for key in keys:
        value = usage.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


class UsageReader:
    """
    Takes the bytes of an answer as they pass; the answer itself is not changed.

    :param streams: whether it comes as server-sent events
    """

    def __init__(self, *, streams: bool) -> None:
        self._streams = streams
        self._held = bytearray()
        self._size = 0
        self._usage: TurnUsage | None = None

    def feed(self, data: bytes) -> None:
        """Take in some bytes."""
        self._size += len(data)
        if not self._streams:
            if self._size <= MOST_BYTES:
                self._held += data
            return
        self._held += data
        *lines, rest = self._held.split(b'\n')
        self._held = rest if len(rest) <= MOST_BYTES else bytearray()
        for line in lines:
            if line.startswith(b'data:') and b'"usage"' in line:
                self._read(bytes(line[5:]))

    def _read(self, text: bytes) -> None:
        try:
            found = usage_of(json.loads(text))
        except (ValueError, RecursionError):
            return
        if found is not None:
            self._usage = self._joined(found)

    def _joined(self, found: TurnUsage) -> TurnUsage:
        """Return the newest figures; an event that tells only the output keeps the prompt's."""
        before = self._usage
        if before is None or found.prompt_tokens > before.prompt_tokens:
            return found
        is_less = found.cached_tokens is None or found.prompt_tokens < before.prompt_tokens
        return TurnUsage(
            prompt_tokens=before.prompt_tokens,
            cached_tokens=before.cached_tokens if is_less else found.cached_tokens,
            output_tokens=max(before.output_tokens, found.output_tokens),
        )

    def usage(self) -> TurnUsage | None:
        """Return what the answer has told, None if it told nothing."""
        if not self._streams and self._usage is None and self._size <= MOST_BYTES:
            self._read(bytes(self._held))
        return self._usage if self._usage is not None and self._usage.prompt_tokens else None


class UsageFilter:
    """
    Takes the one event that tells usage out of a stream whose agent did not ask for it.

    Every other byte passes as it is, an event as soon as it is whole.
    """

    def __init__(self) -> None:
        self._held = b''

    def pass_on(self, data: bytes) -> bytes:
        """Return what the agent gets of some bytes."""
        held, begin, out = self._held + data, 0, []
        for end in _EVENT_END.finditer(held):
            event, begin = held[begin : end.end()], end.end()
            if not _is_usage_alone(event):
                out.append(event)
        self._held = held[begin:]
        return b''.join(out)

    def rest(self) -> bytes:
        """Return what is left at the end of the stream."""
        held, self._held = self._held, b''
        return held


def _is_usage_alone(event: bytes) -> bool:
    if not event.startswith(b'data:') or b'"usage"' not in event:
        return False
    try:
        facts = json.loads(event[5:])
    except (ValueError, RecursionError):
        return False
    return isinstance(facts, dict) and facts.get('choices') == [] and bool(facts.get('usage'))
