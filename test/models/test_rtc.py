# SPDX-License-Identifier: Apache-2.0
"""How a model's mode of real-time chunking is chosen."""

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.models.rtc import RtcMode, RtcOptions, resolved_rtc


@pytest.mark.parametrize(
    ('mode', 'trained_steps', 'expected'),
    [
        (None, 0, RtcMode.GUIDED),
        (None, 6, RtcMode.HARD_PREFIX),
        (RtcMode.GUIDED, 6, RtcMode.GUIDED),
        (RtcMode.HARD_PREFIX, 6, RtcMode.HARD_PREFIX),
        (RtcMode.NONE, 0, RtcMode.NONE),
    ],
)
def test_mode_is_chosen_by_how_the_model_was_trained(
    mode: RtcMode | None, trained_steps: int, expected: RtcMode
) -> None:
    options = RtcOptions(mode=mode, max_gain=7.0)
    found = resolved_rtc(options, trained_steps=trained_steps, name='it')
    assert (found.mode, found.max_gain) == (expected, 7.0)


def test_hard_prefix_needs_a_model_trained_for_it() -> None:
    with pytest.raises(ConfigError, match=r'folded was not trained .* choose guided'):
        resolved_rtc(RtcOptions(mode=RtcMode.HARD_PREFIX), trained_steps=0, name='folded')
