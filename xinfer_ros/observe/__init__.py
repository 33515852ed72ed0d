# SPDX-License-Identifier: Apache-2.0
"""What the server can tell of itself: the fleet's status, the lanes' timeline, metrics."""
