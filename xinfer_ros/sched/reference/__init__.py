# SPDX-License-Identifier: Apache-2.0
"""
The scheduling policies in Python, to be read; slow, and equal to the compiled ones in every bit.

Start with ``core.py``, then ``state.py``; ``shared_slack.py`` is XInfer's, ``foresight.py`` the
default. Times in ms since the first event. The numbers of equations and algorithms are those of
"Scaling VLA Serving Under Robotic Execution Constraints" (2026).
"""
