# SPDX-License-Identifier: Apache-2.0
"""Models behind one interface; the only folder, besides the engine's lanes, that uses torch."""
