# SPDX-License-Identifier: Apache-2.0
"""Simulated arms with real physics, the scripted experts that move them; needs gym-aloha."""
