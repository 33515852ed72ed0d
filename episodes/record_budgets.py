# SPDX-License-Identifier: Apache-2.0
"""
Record scripted two-arm episodes in quantity, as budget sequences and without pictures.

Each episode is simulated to its end, so that its cube was really passed on, and becomes the
response budgets that a robot would ask for: tight around each switch of a gripper, wide
elsewhere. Every seed has its own place of the cube and its own pace of the four phases. How long
an episode takes is chosen so that the shares of tight time spread over 36 to 78 % with a mean of
64 %, as in the parcel workload of XInfer.

Needs xinfer-ros with its extra ``physics``; no pictures are rendered. A minute of one core::

    python episodes/record_budgets.py --out xinfer_ros/sim/data/recorded.json
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xinfer_ros.core.budget_sequence import BudgetSequences
from xinfer_ros.episodes.budgets import BudgetRule, budget_sequence
from xinfer_ros.episodes.episode import Episode, Series
from xinfer_ros.physics.scene_view import JOINT_NAMES

os.environ.setdefault('MUJOCO_GL', 'disable')
from xinfer_ros.physics import scripted_transfer

#: Least and largest share of tight time [1].
LEAST, MOST = 0.36, 0.78
#: How much the pace of a phase may differ between seeds, each way [1].
PACE_SPREAD = 0.45
#: Within which the length of an episode is searched [s].
SHORTEST_S, LONGEST_S = 8.0, 40.0
SUCCESS_REWARD = 4
ABOUT = (
    'simulated two-arm cube transfers (gym-aloha), episodes/record_budgets.py, seeds {first} to '
    '{last}; paces chosen for tight shares of 36 to 78 %'
)


def target_shares(count: int) -> list[float]:
    """Return shares of tight time for so many episodes, in no particular order."""
    places = np.sqrt(np.linspace(0.0, 1.0, count))  # density rising to the larger ones: mean 64 %
    shares = LEAST + (MOST - LEAST) * places
    found: list[float] = np.random.default_rng(count).permutation(shares).tolist()
    return found


def seconds_for(seed: int, share: float, rule: BudgetRule) -> float:
    """Return the length at which the script of a seed has this share of tight time [s]."""
    shortest, longest = SHORTEST_S, LONGEST_S
    while longest - shortest > 0.01:
        seconds = (shortest + longest) / 2
        ends_s = scripted_transfer.phase_ends(seed, seconds, PACE_SPREAD)
        grippers = scripted_transfer.gripper_rows(ends_s)
        episode = _episode('', ('left_gripper', 'right_gripper'), grippers, grippers)
        if budget_sequence(episode, rule).coverage > share:
            shortest = seconds
        else:
            longest = seconds
    return longest


def record(seed: int, seconds: float) -> Episode:
    """
    Simulate one episode and return it.

    :raises SystemExit: if the transfer fails for this seed
    """
    environment = scripted_transfer.make_environment(seed)
    ends_s = scripted_transfer.phase_ends(seed, seconds, PACE_SPREAD)
    keyframes = list(scripted_transfer.run(environment, ends_s))
    environment.physics.free()
    if keyframes[-1].reward != SUCCESS_REWARD:
        raise SystemExit(f'seed {seed} ends with reward {keyframes[-1].reward}: choose others')
    states, commands = (
        np.array([getattr(keyframe, part) for keyframe in keyframes])
        for part in ('position', 'command')
    )
    return _episode(f'aloha_{seed}', JOINT_NAMES, states, commands)


def _episode(name: str, joints: tuple[str, ...], *parts: scripted_transfer.Array) -> Episode:
    times_ns = np.arange(len(parts[0]), dtype=np.int64) * scripted_transfer.KEYFRAME_NS
    states, commands = (Series(times_ns=times_ns, values=values) for values in parts)
    return Episode(name=name, joints=joints, states=states, commands=commands)


def main(argv: Sequence[str] | None = None) -> None:
    """Record the episodes that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--out', type=Path, required=True, metavar='FILE.json')
    parser.add_argument('--first', type=int, default=100, metavar='SEED', help='(default: 100)')
    parser.add_argument('--count', type=int, default=36, metavar='N', help='(default: 36)')
    arguments = parser.parse_args(argv)
    rule, sequences = BudgetRule(), []
    for number, share in enumerate(target_shares(arguments.count)):
        seed = arguments.first + number
        seconds = seconds_for(seed, share, rule)
        sequence = budget_sequence(record(seed, seconds), rule)
        sequences.append(sequence)
        print(f'{sequence.name}: {sequence.duration_s:.2f} s, tight {sequence.coverage:.0%}')
    about = ABOUT.format(first=arguments.first, last=arguments.first + arguments.count - 1)
    found = BudgetSequences(about=about, period_ms=rule.period_ms, sequences=tuple(sequences))
    arguments.out.write_text(found.text())
    print(
        f'{arguments.out}: {len(sequences)} episodes, tight {found.mean_coverage:.1%} on average'
    )


if __name__ == '__main__':
    main()
