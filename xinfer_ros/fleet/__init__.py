# SPDX-License-Identifier: Apache-2.0
"""What a run of a fleet amounts to: tables and verdicts."""
