# SPDX-License-Identifier: Apache-2.0
"""What a robot does while its LLM brain waits for a place, is parked or does not answer."""

from dataclasses import dataclass

SILENT_NS = 5_000_000_000  # the brain node speaks once a second while there is an episode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """What was heard last; exchanged as a whole, since the control thread reads it."""

    why: str = ''
    has_episode: bool = False
    at_ns: int = 0


class BrainWait:
    """
    Keeps what was heard of the brain; a brain node that falls silent in an episode is waited for.

    One thread hears, any other may ask.

    :param holds: whether the robot holds meanwhile, else it keeps its last task
    """

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds
        self._heard = _Heard()

    def heard(self, why: str, *, has_episode: bool, now_ns: int) -> None:
        """
        Take in how the brain is.

        :param why: it keeps the robot waiting, empty if it does not
        :param has_episode: whether the robot has an episode
        :param now_ns: steady clock [ns]
        """
        self._heard = _Heard(why=why, has_episode=has_episode, at_ns=now_ns)

    def word(self, now_ns: int) -> str:
        """Return why the brain keeps the robot waiting, empty if it does not."""
        heard = self._heard
        if not heard.has_episode:
            return ''
        silent_ns = now_ns - heard.at_ns
        if silent_ns > SILENT_NS:
            return f'the brain node has been silent for {silent_ns // 10**9} s'
        return heard.why

    def trouble(self, now_ns: int) -> str:
        """Return why the robot must hold, empty if it need not."""
        word = self.word(now_ns) if self._holds else ''
        return f'the brain waits: {word}' if word else ''
