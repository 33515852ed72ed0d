# SPDX-License-Identifier: Apache-2.0
"""What a robot does while its LLM brain waits for a place, is parked or does not answer."""

SILENT_NS = 5_000_000_000  # the brain node speaks once a second while there is an episode


class BrainWait:
    """
    Keeps what was heard of the brain; a brain node that falls silent in an episode is waited for.

    :param holds: whether the robot holds meanwhile, else it keeps its last task
    """

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds
        self._why = ''
        self._has_episode = False
        self._heard_ns = 0

    def heard(self, why: str, *, has_episode: bool, now_ns: int) -> None:
        """
        Take in how the brain is.

        :param why: it keeps the robot waiting, empty if it does not
        :param has_episode: whether the robot has an episode
        :param now_ns: steady clock [ns]
        """
        self._why, self._has_episode, self._heard_ns = why, has_episode, now_ns

    def word(self, now_ns: int) -> str:
        """Return why the brain keeps the robot waiting, empty if it does not."""
        if not self._has_episode:
            return ''
        if now_ns - self._heard_ns > SILENT_NS:
            return f'the brain node has been silent for {(now_ns - self._heard_ns) // 10**9} s'
        return self._why

    def trouble(self, now_ns: int) -> str:
        """Return why the robot must hold, empty if it need not."""
        word = self.word(now_ns) if self._holds else ''
        return f'the brain waits: {word}' if word else ''
