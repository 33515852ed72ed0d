# SPDX-License-Identifier: Apache-2.0
"""What a prompt keeps of the one before."""

from typing import Any

import pytest

from xinfer_ros.brain.gateway.fingerprint import Fingerprint

PICTURE = {'type': 'image_url', 'image_url': {'url': 'data:image/jpeg;base64,' + 'A' * 200_000}}
RULES = {'role': 'system', 'content': 'You drive a robot. ' * 200}


def _said(role: str, content: Any) -> dict[str, Any]:
    return {'role': role, 'content': content}


def _share(before: list[Any], after: list[Any]) -> float:
    return Fingerprint.of({'messages': before}).kept_share(Fingerprint.of({'messages': after}))


def test_a_turn_that_only_appends_keeps_all_of_the_earlier_prompt() -> None:
    """BG-05: fixed text first, what changes last: at least 90 % are kept."""
    before = [RULES, _said('user', [PICTURE, {'type': 'text', 'text': 'state: 0.1 0.2'}])]
    after = [*before, _said('assistant', 'pick()'), _said('user', 'state: 0.3 0.4')]
    assert _share(before, after) == 1.0


def test_a_turn_with_the_robot_state_in_front_keeps_next_to_nothing() -> None:
    """BG-05: changing content stands first."""
    before = [_said('system', 'state: 0.1 0.2'), RULES]
    assert _share(before, [_said('system', 'state: 0.3 0.4'), RULES]) < 0.05


def test_a_pruned_picture_is_a_rewritten_prefix_however_many_bytes_it_had() -> None:
    """RPent prunes old pictures: what stands before the first one is kept."""
    before = [
        RULES,
        _said('user', [PICTURE]),
        _said('assistant', 'pick()'),
        _said('user', [PICTURE]),
    ]
    after = [RULES, _said('user', []), *before[2:]]
    assert 0.2 < _share(before, after) < 0.5


@pytest.mark.parametrize('key', ['prompt', 'input', 'instructions'])
def test_a_text_that_grows_at_its_end_is_kept(key: str) -> None:
    before, after = {key: 'abc ' * 101}, {key: 'abc ' * 205}
    assert Fingerprint.of(before).kept_share(Fingerprint.of(after)) == 1.0
    assert Fingerprint.of(before).kept_share(Fingerprint.of({key: 'x' + 'abc ' * 205})) == 0.0


def test_other_tools_are_another_prefix() -> None:
    messages = [RULES]
    one = Fingerprint.of({'messages': messages, 'tools': [{'name': 'pick'}]})
    assert one.kept_share(Fingerprint.of({'messages': messages, 'tools': [{'name': 'put'}]})) == 0


def test_the_first_prompt_of_an_episode_rewrites_nothing() -> None:
    assert Fingerprint().kept_share(Fingerprint.of({'messages': [RULES]})) == 1.0


@pytest.mark.parametrize(
    'body',
    [
        {'messages': [None, 3, {'content': {'a': 1}}, {'role': 'user', 'content': [1, {'x': 2}]}]},
        {'prompt': [1, 2, 3]},
        {'input': {'a': 'b'}},
        {'messages': 'text'},
        {'prompt': '\ud800'},
        {},
    ],
)
def test_a_strange_body_has_a_fingerprint_all_the_same(body: dict[str, Any]) -> None:
    assert Fingerprint.of(body).kept_share(Fingerprint.of(body)) == 1.0
