# SPDX-License-Identifier: Apache-2.0
"""Answers of the scripted LLM in the forms of the OpenAI interface."""

import json
import secrets
from typing import Any

from xinfer_ros.brain.scripted_engine import ScriptedRequest, text_of

MODEL = 'brain'
Facts = dict[str, Any]


class Shape:
    """
    The form of an answer.

    :param request: what is answered
    :param body: of the call
    """

    def __init__(self, request: ScriptedRequest, body: Facts) -> None:
        self._request, self._body = request, body
        self.id = f'{type(self).__name__.lower()}-{secrets.token_hex(6)}'

    @property
    def _text(self) -> str:
        return ''.join(map(text_of, self._request.answer))

    def _usage(self) -> Facts:
        prompt, output = len(self._request.prompt), len(self._request.answer)
        return {
            'prompt_tokens': prompt,
            'total_tokens': prompt + output,
            'completion_tokens': output,
            'prompt_tokens_details': {'cached_tokens': self._request.cached},
        }

    def whole(self) -> Facts:
        """Return the answer in one piece."""
        raise NotImplementedError

    def event(self, token: int) -> bytes:
        """Return the event of a token."""
        raise NotImplementedError

    def end(self) -> bytes:
        """Return the events after the last token."""
        raise NotImplementedError


def _event(facts: Facts) -> bytes:
    return b'data: ' + json.dumps(facts, separators=(',', ':')).encode() + b'\n\n'


class _ChunkShape(Shape):
    """Chat and text completions, which end with usage if the call asks for it."""

    def _facts(self, kind: str, choices: list[Facts], **more: Any) -> Facts:
        facts = {'id': self.id, 'object': kind, 'created': 0, 'model': MODEL}
        return {**facts, 'choices': choices, **more}

    def _choice(self, text: str, finish: str | None) -> Facts:
        raise NotImplementedError

    _kind = ''

    def event(self, token: int) -> bytes:
        """Return the event of a token."""
        return _event(self._facts(self._kind, [self._choice(text_of(token), None)]))

    def end(self) -> bytes:
        """Return the events after the last token."""
        out = _event(self._facts(self._kind, [self._choice('', 'length')]))
        options = self._body.get('stream_options')
        if isinstance(options, dict) and options.get('include_usage'):
            out += _event(self._facts(self._kind, [], usage=self._usage()))
        return out + b'data: [DONE]\n\n'


class ChatShape(_ChunkShape):
    """``/v1/chat/completions``."""

    _kind = 'chat.completion.chunk'

    def whole(self) -> Facts:
        """Return the answer in one piece."""
        message = {'role': 'assistant', 'content': self._text}
        choice = {'index': 0, 'message': message, 'finish_reason': 'length'}
        return self._facts('chat.completion', [choice], usage=self._usage())

    def _choice(self, text: str, finish: str | None) -> Facts:
        return {'index': 0, 'delta': {'content': text}, 'finish_reason': finish}


class TextShape(_ChunkShape):
    """``/v1/completions``."""

    _kind = 'text_completion'

    def whole(self) -> Facts:
        """Return the answer in one piece."""
        return self._facts(self._kind, [self._choice(self._text, 'length')], usage=self._usage())

    def _choice(self, text: str, finish: str | None) -> Facts:
        return {'index': 0, 'text': text, 'finish_reason': finish, 'logprobs': None}


class ResponseShape(Shape):
    """``/v1/responses``."""

    def whole(self) -> Facts:
        """Return the answer in one piece."""
        prompt, output = len(self._request.prompt), len(self._request.answer)
        text = {'type': 'output_text', 'text': self._text, 'annotations': []}
        message = {
            'id': f'msg-{self.id}', 'type': 'message', 'role': 'assistant', 'status': 'completed',
            'content': [text],
        }  # fmt: skip
        return {
            'id': self.id, 'object': 'response', 'created_at': 0, 'model': MODEL,
            'status': 'completed', 'output': [message], 'parallel_tool_calls': False,
            'tool_choice': 'auto', 'tools': [],
            'usage': {
                'input_tokens': prompt,
                'input_tokens_details': {'cached_tokens': self._request.cached},
                'output_tokens': output,
                'output_tokens_details': {'reasoning_tokens': 0},
                'total_tokens': prompt + output,
            },
        }  # fmt: skip

    def event(self, token: int) -> bytes:
        """Return the event of a token."""
        number = self._request.given
        facts = {
            'type': 'response.output_text.delta', 'item_id': f'msg-{self.id}', 'output_index': 0,
            'content_index': 0, 'delta': text_of(token), 'sequence_number': number, 'logprobs': [],
        }  # fmt: skip
        return b'event: response.output_text.delta\n' + _event(facts)

    def end(self) -> bytes:
        """Return the last event."""
        facts = {
            'type': 'response.completed',
            'response': self.whole(),
            'sequence_number': self._request.given + 1,
        }
        return b'event: response.completed\n' + _event(facts)
