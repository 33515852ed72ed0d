# SPDX-License-Identifier: Apache-2.0
"""Makes ``python -m xinfer_ros.cli`` the command ``xinfer``."""

from xinfer_ros.cli import main

if __name__ == '__main__':
    raise SystemExit(main())
