# SPDX-License-Identifier: Apache-2.0
"""Every setting: its default, its bounds, and what is said of a wrong one."""

import dataclasses
import math
from dataclasses import Field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_ros.config import ExecutorConfig, ReplayConfig, ServerConfig
from xinfer_ros.errors import ConfigError
from xinfer_ros.setting import allowed, describe, nearest, settings_from

KINDS = (ServerConfig, ExecutorConfig, ReplayConfig)
SETTINGS = [(kind, setting) for kind in KINDS for setting in dataclasses.fields(kind)]
BOUNDED = [(kind, s) for kind, s in SETTINGS if s.metadata['low'] is not None]
CHOSEN = [(kind, s) for kind, s in SETTINGS if s.metadata['choices']]


def _id(value: object) -> str:
    return value.__name__ if isinstance(value, type) else value.name  # type: ignore[attr-defined]


# Choices that are allowed beside another setting only
COMPANIONS = {
    'velocity': {'hold': 'zero_velocity'},
    'zero_velocity': {'command_interface': 'velocity'},
    'safe_pose': {'safe_pose': ['*=0.0']},
}


def _set(kind: type, name: str, value: object) -> object:
    values = {name: value} | COMPANIONS.get(value if isinstance(value, str) else '', {})
    return getattr(settings_from(kind, values, dict.fromkeys(values, 'a.yaml (/**)')), name)


def _refusal(kind: type, name: str, value: object) -> str:
    with pytest.raises(ConfigError) as caught:
        _set(kind, name, value)
    return str(caught.value)


@pytest.mark.parametrize(('kind', 'setting'), SETTINGS, ids=_id)
def test_setting_accepts_its_default(kind: type, setting: 'Field') -> None:
    value = list(setting.default) if isinstance(setting.default, tuple) else setting.default
    assert _set(kind, setting.name, value) == setting.default
    assert type(_set(kind, setting.name, value)) is type(setting.default)


@pytest.mark.parametrize('kind', KINDS, ids=_id)
def test_without_values_every_default_is_in_force(kind: type) -> None:
    assert settings_from(kind, {}, {}) == kind()


@pytest.mark.parametrize(('kind', 'setting'), BOUNDED, ids=_id)
def test_bounds_belong_to_what_is_allowed(kind: type, setting: 'Field') -> None:
    number = type(setting.default)
    low, high = setting.metadata['low'], setting.metadata['high']
    assert low <= setting.default <= high
    assert _set(kind, setting.name, number(low)) == low
    assert _set(kind, setting.name, number(high)) == high


@pytest.mark.parametrize(('kind', 'setting'), BOUNDED, ids=_id)
def test_value_beyond_a_bound_is_refused(kind: type, setting: 'Field') -> None:
    low, high = setting.metadata['low'], setting.metadata['high']
    if isinstance(setting.default, int):
        beyond = [low - 1, high + 1, 2**31, 2**63]
    else:
        beyond = [math.nextafter(low, -math.inf), math.nextafter(high, math.inf), -1.0, 1e12]
    for value in beyond:
        text = _refusal(kind, setting.name, value)
        assert setting.name in text
        assert f'from {low:g} to {high:g}' in text


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ('kind', 'setting'), [(k, s) for k, s in SETTINGS if isinstance(s.default, float)], ids=_id
)
def test_number_that_is_not_finite_is_refused(kind: type, setting: 'Field', value: float) -> None:
    assert f'{setting.name} is {value!r}' in _refusal(kind, setting.name, value)


@pytest.mark.parametrize(('kind', 'setting'), CHOSEN, ids=_id)
def test_choice_is_one_of_those_listed(kind: type, setting: 'Field') -> None:
    for choice in setting.metadata['choices']:
        assert _set(kind, setting.name, choice) == choice
        text = _refusal(kind, setting.name, choice + 'x')
        assert f'did you mean {choice}?' in text
        assert all(other in text for other in setting.metadata['choices'])


WRONG = {
    bool: [0, 1, 'true', None, 1.0],
    int: [1.0, '4', True, None, [1], 2.7],
    float: ['0.5', True, None, [0.5]],
    str: [1, True, None, ['a'], 0.5],
    tuple: ['a', 1, None, [1], ['a', 2], [['a']], {'a': 1}],
}


@pytest.mark.parametrize(('kind', 'setting'), SETTINGS, ids=_id)
def test_value_of_another_type_is_refused_and_never_converted(
    kind: type, setting: 'Field'
) -> None:
    """Also seen (strands 1750): "4", 2.7 and 0 are not silently coerced."""
    for value in WRONG[type(setting.default)]:
        text = _refusal(kind, setting.name, value)
        assert f'{setting.name} is {value!r} ({type(value).__name__})' in text
        assert allowed(setting) in text


def test_whole_number_is_good_for_a_double_and_becomes_one() -> None:
    """LC-01: 100 for a double is 100.0."""
    value = _set(ServerConfig, 'lease_s', 100)
    assert (value, type(value)) == (100.0, float)


def test_number_too_large_for_a_double_is_refused_like_any_other() -> None:
    """A whole number of 400 digits is a mistake that the user can mend, not a crash."""
    assert 'lease_s' in _refusal(ServerConfig, 'lease_s', 10**400)


@pytest.mark.parametrize('value', [-1, 0, 2**31])
def test_absurd_timeouts_are_refused_at_the_start(value: int) -> None:
    """SL-04: −1 never means "wait for ever"."""
    for name in ('engine_start_timeout_s', 'lease_s'):
        assert name in _refusal(ServerConfig, name, value)
    assert 'sensor_timeout_s' in _refusal(ExecutorConfig, 'sensor_timeout_s', value)


@pytest.mark.parametrize('value', [0, -1, math.nan, 1e12, 60.001])
def test_absurd_budgets_are_refused_at_the_start(value: float) -> None:
    """SC-05: budget 0, −1, NaN, 1e12 or more than 60 000 ms."""
    assert 'response_budget_s' in _refusal(ExecutorConfig, 'response_budget_s', value)


@pytest.mark.parametrize(('kind', 'setting'), SETTINGS, ids=_id)
def test_misspelt_key_is_refused_with_place_and_nearest_name(kind: type, setting: 'Field') -> None:
    """LC-01: the nearest valid name, for every setting."""
    misspelt = setting.name[:-1] + 'x' + setting.name[-1]
    text = _refusal(kind, misspelt, setting.default)
    assert text.startswith(f'a.yaml (/**): unknown key {misspelt}')
    assert f'did you mean {setting.name}?' in text


def test_key_that_resembles_nothing_is_refused_with_all_names() -> None:
    text = _refusal(ReplayConfig, 'zzzzzzz', 1)
    assert all(f.name in text for f in dataclasses.fields(ReplayConfig))


def test_place_is_named_even_if_nobody_gave_it() -> None:
    with pytest.raises(ConfigError, match=r'^settings: unknown key nonsense'):
        settings_from(ReplayConfig, {'nonsense': 1}, {})


@settings(deadline=None, derandomize=True, max_examples=300)
@given(
    st.sampled_from(SETTINGS),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(),
        st.lists(st.text()),
        st.binary(),
    ),
)
def test_value_is_either_in_bounds_or_refused_by_name(
    place: 'tuple[type, Field]', value: object
) -> None:
    kind, setting = place
    low, high = setting.metadata['low'], setting.metadata['high']
    try:
        accepted = _set(kind, setting.name, value)
    except ConfigError as error:
        assert setting.name in str(error)  # noqa: PT017
    else:
        assert type(accepted) is type(setting.default)
        assert accepted == (tuple(value) if isinstance(value, list) else value)
        assert low is None or low <= accepted <= high
        assert not setting.metadata['choices'] or accepted in setting.metadata['choices']


@pytest.mark.parametrize('kind', KINDS, ids=_id)
def test_description_tells_everything_of_every_setting(kind: type) -> None:
    rows = describe(kind)
    assert [row[0] for row in rows] == [f.name for f in dataclasses.fields(kind)]
    for (name, default, permitted, meaning), setting in zip(
        rows, dataclasses.fields(kind), strict=True
    ):
        assert meaning == setting.metadata['doc']
        assert len(meaning) > 5, name
        assert permitted == allowed(setting)
        assert permitted
        assert default == str(
            list(setting.default) if isinstance(setting.default, tuple) else setting.default
        )


@pytest.mark.parametrize(('kind', 'setting'), SETTINGS, ids=_id)
def test_settings_in_seconds_say_so_and_numbers_have_bounds(kind: type, setting: 'Field') -> None:
    assert setting.name.endswith('_s') == (setting.metadata['unit'] == 's')
    assert setting.name.endswith('_steps') == (setting.metadata['unit'] == 'steps')
    if type(setting.default) in (int, float):
        assert setting.metadata['low'] is not None
        assert setting.metadata['high'] is not None


def test_settings_cannot_be_changed_after_the_start() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ServerConfig().model = 'echo'  # type: ignore[misc]


def test_nearest_name_is_given_or_all_of_them() -> None:
    assert nearest('modle', ['model', 'bag']) == 'did you mean model?'
    assert nearest('xyz', ['model', 'bag']) == 'known: model, bag'


@pytest.mark.parametrize(
    ('values', 'words'),
    [
        ({'camera_topics': ('a', 'b')}, 'camera_topics has 2 entries, camera_names 3'),
        ({'camera_names': ('a', 'a')}, 'every entry once'),
        ({'joint_names': ('a', '')}, 'none empty'),
        ({'command_topics': ()}, 'at least one topic'),
        ({'command_topics': ('no blanks',)}, 'command_topics'),
        ({'command_types': ('twist',)}, 'allowed: joint_trajectory, float64_multi_array'),
        ({'command_types': ('joint_state', 'joint_state')}, 'one for all, or one each'),
        ({'command_joints': ('a', 'b')}, 'one each, or none to a single'),
        ({'command_topics': ('a', 'b')}, 'command_joints has 0 entries, command_topics 2'),
        ({'command_interface': 'velocity', 'hold': 'last_position'}, 'must not be held'),
        ({'hold': 'safe_pose'}, 'needs a value for every joint'),
        ({'safe_pose': ('a=0.0',)}, 'nothing else does'),
        ({'safe_pose': ('a 0',), 'hold': 'safe_pose'}, 'JOINT=VALUE'),
        ({'position_limits': ('a=1',)}, 'JOINT=LOWER:UPPER'),
        ({'model_joint_names': ('a',)}, 'joint_names 0'),
        ({'budget_sources': ('grip',)}, 'allowed: gripper, contact, motion'),
        ({'budget_sources': ('contact',)}, 'give contact_efforts'),
        ({'horizon_adaptation': True, 'minimum_period_s': 1.0}, 'longest_period_s 0.36'),
        ({'server': 'fleet'}, 'a namespace such as /fleet'),
        ({'server': '/fleet/'}, 'a namespace such as /fleet'),
        ({'robot_id': 'a/b'}, 'robot_id'),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(values: dict, words: str) -> None:
    """LC-01: at the start, not when the first message is to leave."""
    with pytest.raises(ConfigError, match=words) as caught:
        settings_from(ExecutorConfig, values, dict.fromkeys(values, 'a.yaml'))
    assert str(caught.value).startswith('a.yaml: ')


@pytest.mark.parametrize(
    ('values', 'words'),
    [
        ({'echo_joints': ('a',)}, 'the model is tiny, which knows its own'),
        ({'model': 'echo', 'echo_cameras': ('a', 'a')}, 'every entry once'),
    ],
)
def test_contract_from_settings_is_for_the_model_that_has_none(values: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        settings_from(ServerConfig, values, dict.fromkeys(values, 'a.yaml'))
