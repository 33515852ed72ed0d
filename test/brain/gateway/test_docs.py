# SPDX-License-Identifier: Apache-2.0
"""The agent of docs/brain.md works as it stands there."""

import asyncio
import re
import sys
from pathlib import Path

from xinfer_ros.brain.gateway.choice import make_controller
from xinfer_ros.brain.gateway.gateway import Gateway
from xinfer_ros.brain.scripted_engine import ScriptedCosts
from xinfer_ros.brain.scripted_server import ScriptedServer
from xinfer_ros.config import BrainConfig
from xinfer_ros.core.clock import MonotonicClock

PAGE = Path(__file__).parents[3] / 'docs' / 'brain.md'


def test_the_agent_of_the_page_runs_an_episode_in_ten_lines(tmp_path: Path) -> None:
    page = PAGE.read_text()
    (code,) = re.findall(r'```python\n(.*?)```', page, re.S)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10

    async def work() -> tuple[str, dict[str, int]]:
        server = ScriptedServer(ScriptedCosts())
        await server.start()
        config = BrainConfig(port=0, upstreams=(server.url,))
        gateway = Gateway(config, MonotonicClock(), lambda: make_controller(config))
        await gateway.start()
        path = tmp_path / 'agent.py'
        path.write_text(code.replace('127.0.0.1:8100', f'127.0.0.1:{gateway.port}'))
        agent = await asyncio.create_subprocess_exec(
            sys.executable, str(path), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await agent.communicate()
        assert agent.returncode == 0
        over = gateway.pages.status()['over']
        await gateway.close()
        await server.close()
        return said.decode(), over

    said, over = asyncio.run(work())
    for line in said.splitlines():
        assert f'`{line}`' in page
    assert len(said.splitlines()) == 3
    assert over['ENDED'] == 1
