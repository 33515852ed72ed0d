# SPDX-License-Identifier: Apache-2.0
"""What the engine makes of the server's settings, and their way into its process."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.stage import Stage
from xinfer_ros.engine.settings import EngineSettings
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.calibration import load_calibration, save_calibration

from .running_pipeline import submit


def test_no_token_stands_on_the_command_line_of_the_engine() -> None:
    """SE-02: everybody on the machine may read that."""
    secret = 'of-nobodys-business'
    config = ServerConfig(
        max_robots=7,
        http_token=f'{secret}-1',
        websocket_port=8000,
        websocket_host='0.0.0.0',
        websocket_token=f'{secret}-2',
    )
    text = EngineSettings(config).to_json()
    assert secret not in text
    read = EngineSettings.from_json(text).config
    assert (read.max_robots, read.websocket_host, read.http_port) == (7, '0.0.0.0', 0)


def test_engine_takes_the_calibration_of_its_model_unless_told_otherwise() -> None:
    assert EngineSettings(ServerConfig(model='echo')).device().name == 'echo'
    told = ServerConfig(model='echo', calibration='tiny')
    assert EngineSettings(told).device().name == 'tiny'


def test_calibration_that_does_not_exist_is_refused_with_those_that_do() -> None:
    settings = EngineSettings(ServerConfig(calibration='tinny'))
    with pytest.raises(ConfigError, match=r'no calibration tinny; shipped: .*tiny'):
        settings.device()


def test_device_is_cut_to_one_unit_of_one_request_without_concurrency_in_a_stage() -> None:
    """What is kept for the way outside of the server is the server's, not the calibration's."""
    whole = EngineSettings(ServerConfig(calibration='paper', reserved_s=0.01)).device()
    assert (whole.bound, whole.reserved_ms) == ((3, 6, 5), 10.0)
    config = ServerConfig(calibration='paper', stage_concurrency=False)
    device = EngineSettings(config).device()
    assert device.bound == (1, 1, 1)
    assert device.table.rate(Stage.VIT, (0, 1, 1)) == whole.table.rate(Stage.VIT, (0, 1, 1))


def test_switches_of_the_server_reach_what_the_engine_makes(tmp_path: Path) -> None:
    batched = replace(load_calibration('paper'), batch_work=((1.0,), (1.0, 1.5), (1.0, 1.2, 1.3)))
    path = tmp_path / 'batched.json'
    save_calibration(batched, path)
    config = ServerConfig(calibration=str(path), max_robots=6)
    settings = EngineSettings(config)
    plan = settings.plan(settings.device())
    assert (plan.workers, plan.max_batch, plan.num_states) == ((3, 6, 5), (1, 2, 3), 10)
    alone = EngineSettings(replace(config, stage_concurrency=False, max_in_stages=2))
    plan = alone.plan(alone.device())
    assert (plan.workers, plan.max_batch, plan.num_states) == ((1, 1, 1), (1, 1, 1), 2)


@pytest.mark.parametrize('changes', [{}, {'round_barrier': True}, {'max_in_stages': 1}])
def test_scheduler_of_the_engine_has_the_switches(changes: dict[str, Any]) -> None:
    """Rounds, or a single state: a second request waits while the first is in ViT."""
    config = ServerConfig(calibration='paper', scheduling_policy='fifo')
    settings = EngineSettings(replace(config, **changes))
    device = settings.device()
    scheduler = settings.scheduler(settings.core(device), device)
    scheduler.submit(submit(1).request, 10)
    assert len(scheduler.dispatch(10)) == 1
    scheduler.submit(submit(2).request, 11)
    assert len(scheduler.dispatch(11)) == (0 if changes else 1)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'policy_settings': ('trys=3',)}, 'has no setting trys'),
        ({'unit_timeout_s': 0.1}, 'unit_timeout_s is 0.1, but a unit takes up to'),
        ({'decision_log': '/no/such/folder'}, 'there is no folder /no/such: make it first'),
        ({'decision_log': __file__}, 'which is no folder; name a folder'),
        ({'calibration': 'papr'}, 'no calibration papr'),
    ],
)
def test_what_can_be_known_before_a_start_is_refused_before_it(
    changes: dict[str, Any], words: str
) -> None:
    config = ServerConfig(calibration='paper')
    assert EngineSettings(config).checked().name == 'paper'
    with pytest.raises(ConfigError, match=words):
        EngineSettings(replace(config, **changes)).checked()


def test_policy_of_a_server_takes_settings() -> None:
    config = ServerConfig(
        calibration='paper',
        scheduling_policy='xinfer',
        policy_settings=('strict_gating=true', 'reserved_ms=7'),
        stage_overlap=False,
        max_in_stages=5,
    )
    settings = EngineSettings(config)
    assert settings.policy_changes(settings.device()) == {
        'strict_gating': True, 'reserved_ms': 7.0, 'stage_overlap': False, 'max_held': 5,
    }  # fmt: skip
    twice = EngineSettings(replace(config, policy_settings=('max_held=4',)))
    with pytest.raises(ConfigError, match='policy_settings has max_held; set max_in_stages'):
        twice.policy_changes(twice.device())
    wrong = EngineSettings(replace(config, policy_settings=('strict_gatin=true',)))
    with pytest.raises(ConfigError, match='xinfer has no setting strict_gatin; did you mean'):
        wrong.policy_changes(wrong.device())
