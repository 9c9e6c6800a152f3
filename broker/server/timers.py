"""The timers of a core: one per key, set anew as often as it likes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wrackline.broker.model.effects import CancelTimer, SetTimer


class Timers:
    def __init__(self, on_fired: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_fired = on_fired
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def set(self, effect: SetTimer) -> None:
        self._cancel(effect.key)
        self._handles[effect.key] = self._loop.call_at(effect.at_ms / 1000, self._fire, effect.key)

    def cancel(self, effect: CancelTimer) -> None:
        self._cancel(effect.key)

    def _cancel(self, key: str) -> None:
        handle = self._handles.pop(key, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, key: str) -> None:
        self._handles.pop(key, None)
        self._on_fired(key)

    def close(self) -> None:
        for handle in self._handles.values():
            handle.cancel()
