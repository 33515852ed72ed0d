# SPDX-License-Identifier: Apache-2.0
"""The second front door: openpi's websocket protocol, behind it the same server."""
