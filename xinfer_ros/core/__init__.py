# SPDX-License-Identifier: Apache-2.0
"""What everything else is made of: stages, requests, chunks, clocks and measures; numpy only."""
