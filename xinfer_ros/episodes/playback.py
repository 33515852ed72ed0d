# SPDX-License-Identifier: Apache-2.0
"""A recording played in time: what is due, round after round, and a count of what became of it."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xinfer_ros.episodes.bag import RecordedMessage
from xinfer_ros.episodes.read_ahead import ReadAhead
from xinfer_ros.episodes.recording import Recording
from xinfer_ros.errors import ConfigError

DAMAGED = 'damaged'
AHEAD = 24  # messages that are read before they are due
_LATE_NS = 2_000_000  # when to look again if the reading has not kept up


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackSettings:
    """
    How a recording is played.

    :param start_ns: where in it to begin, taken modulo its length [ns]
    :param loop: whether to start over at the end
    :param rate: speed, 1 as recorded
    """

    start_ns: int = 0
    loop: bool = True
    rate: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedMessage:
    """
    A message with the round in which it is played.

    :param round: 0 for the first
    :param message: what is played
    """

    round: int
    message: RecordedMessage


class Playback:
    """
    Hands a recording's messages on when they are due.

    Latched messages from before the start are handed on first, the newest of each topic.

    :param recording: what is played
    :param settings: how
    :param send: sends a message and returns None, or returns why it is dropped
    :param starts_over: called when a new round begins
    """

    def __init__(
        self,
        recording: Recording,
        settings: PlaybackSettings,
        send: Callable[[str, bytes], str | None],
        starts_over: Callable[[], None] = lambda: None,
    ) -> None:
        if not settings.rate > 0:
            raise ConfigError(f'rate {settings.rate:g}: it must be more than 0')
        self._recording, self._settings = recording, settings
        self._send, self._starts_over = send, starts_over
        self._start_ns = settings.start_ns % max(recording.duration_ns, 1)
        self._round_ns = recording.duration_ns + _spacing_ns(recording)
        self._round = 0
        self._origin_ns: int | None = None
        self.read = self.sent = 0
        self.dropped: Counter[str] = Counter()
        self._ahead: ReadAhead[PlayedMessage] | None = None

    def send_latched(self) -> None:
        """Send the latched messages from before the start, before ``play`` begins."""
        topics = [topic.name for topic in self._recording.topics if topic.latched]
        newest: dict[str, bytes] = {}
        if self._start_ns and topics:
            for message in self._recording.messages(0, topics):
                if message.offset_ns >= self._start_ns:
                    break
                if message.data is not None:
                    newest[message.topic] = message.data
        for topic, data in newest.items():
            self._send(topic, data)

    def play(self, now_ns: int, wait: bool = False) -> int | None:
        """
        Send what is due; return when the next message is due, None at the end [ns].

        :param now_ns: present time of the steady clock; the first call is the start [ns]
        :param wait: whether to wait for the disk, as virtual time does
        """
        if self._origin_ns is None:
            self._origin_ns = now_ns - self._scaled(self._start_ns)
        if self._ahead is None:
            self._ahead = ReadAhead(self._rounds(), AHEAD)
        while True:
            played = self._ahead.peek(wait)
            if played is None:
                return None if self._ahead.ended else now_ns + _LATE_NS
            offset_ns = played.round * self._round_ns + played.message.offset_ns
            due_ns = self._origin_ns + self._scaled(offset_ns)
            if due_ns > now_ns:
                return due_ns
            self._ahead.take()
            if played.round != self._round:
                self._round = played.round
                self._starts_over()
            self._count(played.message)

    def close(self) -> None:
        """Stop reading."""
        if self._ahead is not None:
            self._ahead.close()
        self._recording.close()

    def summary(self) -> str:
        """Return in words what became of the messages."""
        lost = ', '.join(f'{count} {reason}' for reason, count in sorted(self.dropped.items()))
        total = sum(self.dropped.values())
        why = f' ({lost})' if lost else ''
        return f'{self.read} messages read = {self.sent} messages played + {total} dropped{why}'

    def _count(self, message: RecordedMessage) -> None:
        self.read += 1
        reason = DAMAGED if message.data is None else self._send(message.topic, message.data)
        if reason is None:
            self.sent += 1
        else:
            self.dropped[reason] += 1

    def _rounds(self) -> Iterator[PlayedMessage]:
        for message in self._recording.messages(self._start_ns):
            yield PlayedMessage(round=0, message=message)
        number = 1
        while self._settings.loop:
            for message in self._recording.messages():
                yield PlayedMessage(round=number, message=message)
            number += 1

    def _scaled(self, offset_ns: int) -> int:
        return round(offset_ns / self._settings.rate)


def _spacing_ns(recording: Recording) -> int:
    """Return about the time between two messages of a topic, which parts a round from the next."""
    per_topic = recording.num_messages // max(len(recording.topics), 1)
    return recording.duration_ns // max(per_topic, 1)
