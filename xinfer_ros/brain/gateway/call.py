# SPDX-License-Identifier: Apache-2.0
"""What a request to the OpenAI-compatible interface asks for."""

import json
import re
from dataclasses import dataclass
from typing import Any

from xinfer_ros.brain.gateway.fingerprint import Fingerprint
from xinfer_ros.errors import Reason, Rejected

_TURNS = ('chat/completions', 'responses', 'completions', 'messages')
_OTHERS = re.compile(
    r'models(/[\w.:@-]+)*|embeddings|responses/[\w-]+(/cancel)?|messages/count_tokens|'
    r'tokenize|detokenize'
)
_ASK_USAGE = b'{"stream_options":{"include_usage":true},'


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    A request of an agent.

    :param endpoint: below ``/v1/``
    :param is_turn: whether the LLM reads a prompt for it
    :param streams: whether the agent takes its answer as it comes
    :param model: name of the model, empty if it names none
    :param session: id in the body, empty if there is none
    :param prompt: fingerprint of what the LLM reads
    :param body: as it is sent to the LLM server
    :param hides_usage: whether ``body`` asks for usage that the agent did not ask for
    """

    endpoint: str
    is_turn: bool
    streams: bool
    model: str
    session: str
    prompt: Fingerprint
    body: bytes
    hides_usage: bool


def is_served(endpoint: str) -> bool:
    """Return whether the gateway passes an endpoint below ``/v1/`` on; no path leads out of it."""
    if {'.', '..'} & set(endpoint.split('/')):
        return False
    return endpoint in _TURNS or _OTHERS.fullmatch(endpoint) is not None


def read_call(method: str, endpoint: str, body: bytes, *, ask_usage: bool) -> Call:
    """
    Return what a request asks for.

    :param ask_usage: add the wish for usage to a stream of chat or completions without it
    :raises Rejected: REJECTED_EPISODE if the body of a turn is no JSON object
    """
    is_turn = method == 'POST' and endpoint in _TURNS
    facts: dict[str, Any] = _object(body) if is_turn else {}
    streams = facts.get('stream') is True
    of_chunks = endpoint in ('chat/completions', 'completions')
    hides = ask_usage and streams and of_chunks and 'stream_options' not in facts
    return Call(
        endpoint=endpoint,
        is_turn=is_turn,
        streams=streams,
        model=str(facts.get('model') or ''),
        session=_session(facts),
        prompt=Fingerprint.of(facts),
        body=_with_usage(body) if hides else body,
        hides_usage=hides,
    )


def _session(facts: dict[str, Any]) -> str:
    extra = facts.get('vllm_xargs')
    inner = extra.get('session_id') if isinstance(extra, dict) else None
    return str(facts.get('session_id') or inner or '')


def _object(body: bytes) -> dict[str, Any]:
    try:
        facts = json.loads(body.decode())
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise Rejected(Reason.REJECTED_EPISODE, 'the body is no JSON object')
    return facts


def _with_usage(body: bytes) -> bytes:
    """Return the body with one member more; nothing else of it changes."""
    return _ASK_USAGE + body.lstrip()[1:]
