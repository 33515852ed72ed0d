# SPDX-License-Identifier: Apache-2.0
"""A brain as a plan knows it: an LLM server, the episodes that it serves, and its controller."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from xinfer_ros.brain.llm_server import ServerModel
from xinfer_ros.brain.trace import Lengths, TraceModel
from xinfer_ros.config.working_set import WorkingSetConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import nearest, settings_from

Part = TypeVar('Part', ServerModel, TraceModel, Lengths)
# of a server: what would take no time, or hold nothing
LEAST = {
    'block_tokens': 1, 'blocks_a_block': 0.01, 'step_tokens': 1, 'max_requests': 1,
    'prefill_linear_s': 1e-9, 'step_s': 1e-9,
}  # fmt: skip
MOST_TOKENS = 100_000_000
PARTS = ('server', 'episodes', 'controller')


@dataclass(frozen=True, slots=True, kw_only=True)
class Brain:
    """
    One LLM server and what runs on it.

    :param server: what it costs and holds
    :param episodes: what episodes are drawn from
    :param controller: settings of the default controller
    :raises ConfigError: if the server would take no time, or its cache has no room for a context
    """

    server: ServerModel = field(default_factory=ServerModel)
    episodes: TraceModel = field(default_factory=TraceModel)
    controller: WorkingSetConfig = field(default_factory=WorkingSetConfig)

    def __post_init__(self) -> None:
        """Refuse a cache that is none."""
        server, turns = self.server, self.episodes.turns
        least_tokens = self.episodes.first_prompt.median
        for name, least in LEAST.items():
            if getattr(server, name) < least:
                raise ConfigError(
                    f'server: {name} is {getattr(server, name)}; {least:g} or more is needed'
                )
        if not 2 <= turns.low <= turns.median <= turns.high:
            raise ConfigError(
                f'episodes: turns are {turns.low:g} to {turns.high:g}, {turns.median:.3g} in the '
                'median; 2 <= low <= median <= high is needed'
            )
        if not least_tokens <= self.cache_tokens <= MOST_TOKENS:
            raise ConfigError(
                f'the cache has {self.cache_tokens:,} tokens for contexts; allowed: '
                f'{least_tokens:,.0f}, a first prompt, to {MOST_TOKENS:,}; change cache tokens, '
                'or blocks'
            )

    @property
    def cache_tokens(self) -> int:
        """Return the tokens of contexts that the cache holds, beside what all prompts share."""
        server = self.server
        shared = server.shared_tokens // server.block_tokens
        return (server.attention_blocks() - shared) * server.block_tokens

    def with_cache(self, nominal_tokens: float) -> 'Brain':
        """Return it with another size of the cache, as a server tells it [tokens]."""
        blocks = int(nominal_tokens / self.server.block_tokens)
        return replace(self, server=replace(self.server, blocks=blocks))


def load_brain(path: Path) -> Brain:
    """
    Return the brain of a JSON file: ``server``, ``episodes`` and ``controller``, each with those
    of its values that are not the usual ones.

    :raises ConfigError: if there is none, or a name or a value does not fit
    """
    try:
        parts = json.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f'brain {path} cannot be read: {error.strerror}') from error
    except ValueError as error:
        raise ConfigError(f'brain {path} is not JSON: {error}') from error
    if not isinstance(parts, dict) or not all(isinstance(p, dict) for p in parts.values()):
        raise ConfigError(f'brain {path}: an object of {", ".join(PARTS)} is needed, each one too')
    for name in parts:
        if name not in PARTS:
            raise ConfigError(f'brain {path}: {name} is not known; {nearest(name, PARTS)}')
    controller = parts.get('controller', {})
    return Brain(
        server=_changed(ServerModel(), parts.get('server', {}), f'brain {path}: server'),
        episodes=_changed(TraceModel(), parts.get('episodes', {}), f'brain {path}: episodes'),
        controller=settings_from(
            WorkingSetConfig, controller, dict.fromkeys(controller, f'brain {path}')
        ),
    )


def _changed(owner: Part, values: Mapping[str, Any], origin: str) -> Part:
    known = [of.name for of in fields(owner)]
    accepted = {}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(f'{origin} has no {name}; {nearest(name, known)}')
        accepted[name] = _value(getattr(owner, name), value, f'{origin}: {name}')
    try:
        return replace(owner, **accepted)
    except ConfigError as error:
        raise ConfigError(f'{origin}: {error}') from error


def _value(usual: Any, value: Any, origin: str) -> Any:
    """Return a value in the type of the usual one."""
    if isinstance(usual, Lengths) and isinstance(value, dict):
        return _changed(usual, value, origin)
    if isinstance(usual, tuple) and isinstance(value, list) and len(value) == len(usual):
        return tuple(_value(each, new, origin) for each, new in zip(usual, value, strict=True))
    if isinstance(usual, bool) and isinstance(value, bool):
        return value
    if _is_number(value) and (isinstance(usual, float) or _is_whole(usual, value)):
        return type(usual)(value)
    raise ConfigError(f'{origin} is {value!r}; allowed: {_allowed(usual)}')


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0


def _is_whole(usual: Any, value: float) -> bool:
    return isinstance(usual, int) and not isinstance(usual, bool) and value == int(value)


def _allowed(usual: Any) -> str:
    if isinstance(usual, bool):
        return 'true or false'
    if isinstance(usual, tuple):
        return f'a list of {len(usual)} numbers >= 0'
    if isinstance(usual, Lengths):
        return 'an object of median, sigma, low, high'
    return 'a number >= 0' if isinstance(usual, float) else 'a whole number >= 0'
