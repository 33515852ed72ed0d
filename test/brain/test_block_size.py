# SPDX-License-Identifier: Apache-2.0
"""The size of a cache block is seen where no server tells it."""

from xinfer_ros.brain.block_size import BlockSize


def test_what_the_server_says_counts() -> None:
    size = BlockSize(16)
    assert (size.tokens, size.is_known) == (16, False)
    size.tell(784)
    size.found(128, 1000)
    assert (size.tokens, size.is_known) == (784, True)


def test_size_is_what_divides_all_that_was_found() -> None:
    size = BlockSize(16)
    for blocks in (22, 22, 39, 50):
        size.found(784 * blocks, 784 * blocks + 300)
        assert (size.tokens, size.is_known) == (16, False)
    size.found(784 * 63, 784 * 64)
    assert (size.tokens, size.is_known) == (784, True)
    size.found(392, 1000)
    assert size.tokens == 392


def test_nothing_found_and_a_whole_prompt_found_tell_nothing() -> None:
    """The last token of a prompt is always computed."""
    size = BlockSize(16)
    for found in (0, 999, 128, 256, 384, 640):
        size.found(found, 1000)
    assert size.tokens == 128
