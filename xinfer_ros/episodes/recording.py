# SPDX-License-Identifier: Apache-2.0
"""What can be played to a robot's nodes: topics, and messages in the order of their time."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from xinfer_ros.episodes.bag import RecordedMessage
from xinfer_ros.episodes.topic import RecordedTopic


class Recording(Protocol):
    """A bag, or an episode of another format as the messages that a bag of it would hold."""

    @property
    def topics(self) -> Sequence[RecordedTopic]:
        """Return its topics."""
        ...

    @property
    def duration_ns(self) -> int:
        """Return the time from the first to the last message [ns]."""
        ...

    @property
    def num_messages(self) -> int:
        """Return how many messages it holds."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Return what is wrong with it, one line each."""
        ...

    def messages(
        self, start_ns: int = 0, topics: Collection[str] | None = None
    ) -> Iterator[RecordedMessage]:
        """
        Yield messages, oldest first; they are read as they are asked for.

        :param start_ns: from when on, after its first message [ns]
        :param topics: names of the wanted topics; None: all
        """
        ...

    def close(self) -> None:
        """Let go of its files."""
        ...
