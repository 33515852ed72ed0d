# SPDX-License-Identifier: Apache-2.0
"""Of which model and device a calibration is, and what a server does about another one."""

from dataclasses import replace

import pytest

from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import ConfigError
from xinfer_ros.predict.identity import Identity, cpu_device, model_facts
from xinfer_ros.predict.matching import check_match, serving_calibration

from .devices import sharing_device

CONTRACT = ModelContract(
    name='arm',
    cameras=(CameraSpec(name='top', height=224, width=320),),
    joint_names=('a', 'b'),
    horizon=16,
    max_commitment_steps=8,
    max_instruction_bytes=80,
)
SERVED = Identity(
    setting='/data/arm', model='arm', model_facts='horizon 16, float32', device='GPU A'
)
MEASURED = replace(
    sharing_device(), name='arm', model='arm', model_facts='horizon 16, float32', device='GPU A'
)
REMEDY = 'measure this one with `xinfer calibrate --model /data/arm --output FILE.json`'


def test_calibration_of_this_model_and_device_is_good() -> None:
    MEASURED.check(SERVED)
    assert check_match(MEASURED, SERVED, named=True, allow_mismatch=False) == ''
    assert check_match(MEASURED, SERVED, named=False, allow_mismatch=False) == ''


@pytest.mark.parametrize(
    ('changes', 'says'),
    [
        (
            {'device': 'GPU B'},
            'calibration arm is of model arm on GPU B; this is model arm on GPU A: ',
        ),
        (
            {'model': 'leg'},
            'calibration arm is of model leg on GPU A; this is model arm on GPU A: ',
        ),
        (
            {'model_facts': 'horizon 16, bfloat16'},
            'calibration arm is of model arm (horizon 16, bfloat16) on GPU A; '
            'this is model arm (horizon 16, float32) on GPU A: ',
        ),
    ],
)
def test_named_calibration_of_something_else_is_refused_with_both_and_the_remedy(
    changes: dict[str, str], says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_match(replace(MEASURED, **changes), SERVED, named=True, allow_mismatch=False)
    assert str(caught.value).startswith(says + REMEDY)
    assert 'calibration_mismatch: warn' in str(caught.value)


def test_named_calibration_of_something_else_is_used_with_a_warning_if_the_user_says_so() -> None:
    other = replace(MEASURED, device='GPU B')
    warning = check_match(other, SERVED, named=True, allow_mismatch=True)
    assert warning.startswith('calibration arm is of model arm on GPU B; this is')
    assert REMEDY in warning


def test_shipped_calibration_of_another_device_is_an_estimate_and_the_log_says_so() -> None:
    other = replace(MEASURED, device='GPU B')
    assert check_match(other, SERVED, named=False, allow_mismatch=False) == (
        'the shipped calibration arm was measured on GPU B, this is GPU A: predictions start as '
        f'an estimate. For better ones, {REMEDY} and name the file in the setting calibration'
    )


def test_facts_that_were_not_recorded_are_not_compared() -> None:
    replace(MEASURED, model_facts='').check(SERVED)


def test_server_uses_the_calibration_named_or_the_one_that_ships_with_its_model() -> None:
    assert serving_calibration('paper', 'tiny').name == 'paper'
    assert serving_calibration('', 'tiny').name == 'tiny'


def test_model_without_a_shipped_calibration_needs_one_and_is_told_how() -> None:
    with pytest.raises(ConfigError) as caught:
        serving_calibration('', '/data/arm')
    assert str(caught.value) == (
        f'no calibration ships for model /data/arm: {REMEDY} and name the file in the setting '
        'calibration'
    )


@pytest.mark.parametrize(
    ('named', 'model', 'used'),
    [('', 'table', 'paper'), ('', 'table:soft', 'soft'), ('sharp', 'table:soft', 'sharp')],
)
def test_table_model_is_served_with_the_calibration_of_its_times(
    named: str, model: str, used: str
) -> None:
    assert serving_calibration(named, model).name == used


def test_another_number_of_cores_is_another_device() -> None:
    assert cpu_device('AMD EPYC', 2) == 'AMD EPYC, 2 cores'
    assert cpu_device('AMD EPYC', 1) == 'AMD EPYC, 1 core'


def test_facts_hold_what_decides_about_times() -> None:
    facts = model_facts(CONTRACT, dtype='float32', jacobian='identity', torch_threads=1)
    assert facts == (
        'cameras 320x224, 2 joints, horizon 16, instructions of 80 bytes, VIT+PREFILL+ACTION, '
        'float32, 1 thread a stage'
    )


@pytest.mark.parametrize(
    ('contract', 'options'),
    [
        (replace(CONTRACT, horizon=32), {}),
        (replace(CONTRACT, cameras=()), {}),
        (replace(CONTRACT, stages=(Stage.ACTION,)), {}),
        (CONTRACT, {'dtype': 'bfloat16'}),
        (CONTRACT, {'jacobian': 'vjp'}),
        (CONTRACT, {'torch_threads': 2}),
        (CONTRACT, {'torch_threads': 0}),
    ],
)
def test_other_facts_are_told_apart(contract: ModelContract, options: dict[str, object]) -> None:
    usual = {'dtype': 'float32', 'jacobian': 'identity', 'torch_threads': 1}
    made = model_facts(contract, **(usual | options))  # type: ignore[arg-type]
    assert made != model_facts(CONTRACT, **usual)  # type: ignore[arg-type]
