# SPDX-License-Identifier: Apache-2.0
"""
Drives a robot with the unmodified openpi-client; run by a Python that has it.

Usage: drive_robot.py PORT INPUT.npz OUTPUT.npz. The input holds ``state`` ``(n, joints)``,
``prompt``, and ``image_NAME`` ``(n, height, width, 3)`` for each camera.
"""

import sys
from typing import Any

import numpy as np
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.websocket_client_policy import WebsocketClientPolicy

HORIZON = 4


def main(port: int, given: str, result: str) -> None:
    """Ask once for each observation, then as a robot that executes chunks, then wrongly."""
    arrays = np.load(given)
    cameras = [name for name in arrays.files if name.startswith('image_')]

    def observation(row: int) -> dict[str, Any]:
        images = {name[6:]: arrays[name][row].transpose(2, 0, 1) for name in cameras}
        return {
            'state': arrays['state'][row],
            'images': images,
            'prompt': str(arrays['prompt']),
        }

    robot = WebsocketClientPolicy('127.0.0.1', port)
    told = robot.get_server_metadata()
    rows = range(len(arrays['state']))
    chunks = [robot.infer(observation(row)) for row in rows]
    broker = ActionChunkBroker(robot, HORIZON)
    steps = [broker.infer(observation(row % len(rows)))['actions'] for row in range(2 * HORIZON)]
    without = observation(0)
    del without['images'][cameras[0][6:]]
    try:
        robot.infer(without)
        error = ''
    except RuntimeError as refused:
        error = str(refused)
    again = WebsocketClientPolicy('127.0.0.1', port).infer(observation(0))
    np.savez(
        result,
        actions=np.stack([chunk['actions'] for chunk in chunks]),
        session=np.int64(chunks[0]['xinfer']['session']),
        request_ids=[chunk['xinfer']['request_id'] for chunk in chunks],
        infer_ms=[chunk['server_timing']['infer_ms'] for chunk in chunks],
        steps=np.stack(steps),
        again=again['actions'],
        error=error,
        numpy=np.__version__,
        joint_names=told['joint_names'],
    )


if __name__ == '__main__':
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
