"""Servers that keep the promise of each checker, and what clients ask of them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from tests.checkers.jepsen.drawn import REFUSED, Draw, Server
from wrackline.checkers.models.protocol import Operation

Change = Callable[[Random, Operation], Any]


@dataclass
class World:
    """A server with its clients."""

    server: Server
    draw: Draw
    change: Change
    """Another result for an operation."""
    last: Callable[[], list[tuple[str, Any]]] = list
    clients: int = 3
    operations: int = 8
    moves: bool = True
    """Whether an operation may be moved in time: not where each must come after the one before."""


def bank(_chance: Random) -> World:
    held = dict.fromkeys("abc", 10)

    def serve(f: str, argument: Any, _process: int) -> Any:
        if f == "read":
            return dict(held)
        if held[argument["from"]] < argument["amount"]:
            return REFUSED
        held[argument["from"]] -= argument["amount"]
        held[argument["to"]] += argument["amount"]
        return argument

    def draw(chance: Random, _process: int) -> tuple[str, Any]:
        if chance.random() < 0.5:
            return "read", None
        source, target = chance.sample("abc", 2)
        return "transfer", {"from": source, "to": target, "amount": chance.randint(1, 5)}

    def change(chance: Random, one: Operation) -> Any:
        if one.f != "read":
            return one.result
        return {**one.result, chance.choice("abc"): chance.randint(0, 12)}

    return World(serve, draw, change)


def grow_only(add: str) -> Callable[[Random], World]:
    """A set, whose operation to add is named so."""

    def world(chance: Random) -> World:
        held: list[int] = []
        numbers = count()

        def serve(f: str, argument: Any, _process: int) -> Any:
            if f == "read":
                return list(held)
            if argument not in held:
                held.append(argument)
            return argument

        def draw(chance: Random, _process: int) -> tuple[str, Any]:
            if chance.random() < 0.4:
                return "read", None
            return add, next(numbers) if chance.random() < 0.9 else chance.randint(0, 2)

        def change(chance: Random, one: Operation) -> Any:
            if one.f != "read":
                return one.result
            kept = [value for value in one.result if chance.random() < 0.6]
            return kept if chance.random() < 0.8 else [*kept, chance.randint(0, 9)]

        return World(serve, draw, change, lambda: [("read", None)] if chance.random() < 0.7 else [])

    return world


def queue(chance: Random) -> World:
    held: list[int] = []
    numbers = count()

    def serve(f: str, argument: Any, _process: int) -> Any:
        if f == "enqueue":
            held.append(argument)
            return argument
        if f == "drain":
            return drain()
        return held.pop(chance.randrange(len(held))) if held else "empty"

    def drain() -> Generator[None, None, Any]:
        got = []
        while held:
            got.append(held.pop(0))
            yield
        return got

    def draw(chance: Random, _process: int) -> tuple[str, Any]:
        if chance.random() < 0.5:
            return "enqueue", next(numbers) if chance.random() < 0.8 else chance.randint(0, 2)
        return ("dequeue" if chance.random() < 0.85 else "drain"), None

    def change(chance: Random, one: Operation) -> Any:
        match one.f:
            case "dequeue":
                return chance.choice([0, 1, 2, 3, "empty"])
            case "drain":
                return [value for value in one.result if chance.random() < 0.5]
        return one.result

    return World(serve, draw, change, lambda: [("drain", None)] if chance.random() < 0.8 else [])


def ids(_chance: Random) -> World:
    numbers = count()
    return World(
        lambda _f, _argument, _process: next(numbers),
        lambda _chance, _process: ("generate", None),
        lambda chance, _one: chance.randint(0, 5),
    )


def counter(chance: Random) -> World:
    held = [0]
    falls = chance.random() < 0.5

    def serve(f: str, argument: Any, _process: int) -> Any:
        if f == "add":
            held[0] += argument
            return argument
        return held[0]

    def draw(chance: Random, _process: int) -> tuple[str, Any]:
        if chance.random() < 0.4:
            return "read", None
        return "add", chance.randint(-3 if falls else 0, 4)

    return World(serve, draw, lambda chance, one: chance.randint(-4, 9) if one.f == "read" else one.result)


def once(_chance: Random) -> World:
    """Keys that are written once."""
    held: dict[str, int] = {}
    left = list("wxyz")

    def serve(f: str, argument: Any, _process: int) -> Any:
        if f == "write":
            held[argument[0][1]] = argument[0][2]
            return argument
        return [["r", key, held.get(key)] for _, key, _ in argument]

    def draw(chance: Random, _process: int) -> tuple[str, Any]:
        if left and chance.random() < 0.5:
            return "write", [["w", left.pop(chance.randrange(len(left))), 1]]
        return "read", [["r", key, None] for key in chance.sample("wxyz", chance.randint(2, 3))]

    def change(chance: Random, one: Operation) -> Any:
        if one.f != "read":
            return one.result
        return [[f, key, chance.choice([None, 1, value])] for f, key, value in one.result]

    return World(serve, draw, change, operations=9)


def chain(_chance: Random) -> World:
    held = [0]
    numbers = count(1)

    def serve(f: str, argument: Any, _process: int) -> Any:
        if f == "write":
            held[0] = argument
            return argument
        return held[0]

    def draw(chance: Random, _process: int) -> tuple[str, Any]:
        return ("write", next(numbers)) if chance.random() < 0.45 else ("read", None)

    return World(
        serve,
        draw,
        lambda chance, one: chance.randint(0, 4) if one.f == "read" else one.result,
        clients=1,
        moves=False,
    )


def parts(_chance: Random) -> World:
    """Keys of three parts, which are written one after another."""
    there: set[str] = set()
    numbers = count()

    def write(key: int) -> Generator[None, None, Any]:
        for part in range(3):
            there.add(f"{key}_{part}")
            yield
        return key

    def read(key: int) -> Generator[None, None, Any]:
        found = []
        for part in (2, 1, 0):
            name = f"{key}_{part}"
            found.append(name if name in there else None)
            yield
        return [key, found]

    def draw(chance: Random, _process: int) -> tuple[str, Any]:
        return ("write", next(numbers)) if chance.random() < 0.4 else ("read", chance.randint(0, 2))

    def change(chance: Random, one: Operation) -> Any:
        if one.f != "read":
            return one.result
        key, _ = one.result
        return [key, [chance.choice([None, f"{key}_{part}"]) for part in (2, 1, 0)]]

    return World(
        lambda f, argument, _process: write(argument) if f == "write" else read(argument), draw, change
    )


def rows(chance: Random) -> World:
    held: list[dict[str, Any]] = []
    clock = count(7)

    def serve(f: str, _argument: Any, _process: int) -> Any:
        if f == "read":
            return [dict(row) for row in held]
        for _ in range(chance.randint(0, 3)):
            next(clock)
        held.append({"val": len(held), "sts": str(next(clock))})
        return dict(held[-1])

    def draw(chance: Random, _process: int) -> tuple[str, Any]:
        return ("add" if chance.random() < 0.6 else "read"), None

    def change(chance: Random, one: Operation) -> Any:
        if one.f == "add":
            return one.result or {"val": len(held), "sts": str(next(clock))}
        if not one.result:
            return one.result
        found = [dict(row) for row in one.result]
        match chance.randrange(4):
            case 0:
                del found[chance.randrange(len(found))]
            case 1:
                chance.choice(found)["val"] = chance.randint(0, 5)
            case 2:
                chance.choice(found)["sts"] = str(chance.randint(7, 14))
            case 3:
                chance.shuffle(found)
        return found

    return World(serve, draw, change, lambda: [("read", None)] if chance.random() < 0.7 else [])


def predicates(_chance: Random) -> World:
    taken: set[int] = set()

    def serve(_f: str, argument: Any, _process: int) -> Any:
        if argument[0] in taken:
            return REFUSED
        taken.add(argument[0])
        return argument

    def draw(chance: Random, _process: int) -> tuple[str, Any]:
        return "insert", [chance.randint(0, 2), chance.choice([[1, None], [None, 2]])]

    return World(serve, draw, lambda _chance, one: one.result)


def lock(limit: int, named: bool) -> Callable[[Random], World]:
    """A lock with fences. ``named``: whether its clients have names, which outlast their processes."""

    def world(chance: Random) -> World:
        state: dict[str, Any] = {"owner": None, "times": 0, "fence": 0}

        def serve(f: str, _argument: Any, process: int) -> Any:
            mine = process % 3 if named else process
            if f == "release":
                if state["owner"] != mine:
                    return REFUSED
                state["times"] -= 1
                if not state["times"]:
                    state["owner"] = None
                return value(mine)
            if state["owner"] not in (None, mine) or state["times"] == limit:
                return REFUSED
            if state["owner"] is None:
                state["fence"] += chance.randint(1, 3)
            state["owner"] = mine
            state["times"] += 1
            told = {"fence": state["fence"]} if chance.random() < 0.8 else {}
            return value(mine) | told

        def value(owner: int) -> dict[str, Any]:
            return {"client": f"c{owner}"} if named else {}

        def draw(chance: Random, _process: int) -> tuple[str, Any]:
            return chance.choice(["acquire", "release"]), None

        def change(chance: Random, one: Operation) -> Any:
            fence = {"fence": chance.randint(1, 5)} if one.f == "acquire" else {}
            return {**(one.result or {}), **fence}

        return World(serve, draw, change, operations=9)

    return world


def permits(number: int) -> Callable[[Random], World]:
    """A semaphore of so many permits."""

    def world(_chance: Random) -> World:
        held: dict[int, int] = {}

        def serve(f: str, _argument: Any, process: int) -> Any:
            mine = process % 3
            if f == "acquire":
                if sum(held.values()) == number:
                    return REFUSED
                held[mine] = held.get(mine, 0) + 1
            elif not held.get(mine):
                return REFUSED
            else:
                held[mine] -= 1
            return {"client": f"c{mine}"}

        def draw(chance: Random, _process: int) -> tuple[str, Any]:
            return chance.choice(["acquire", "release"]), None

        def change(chance: Random, _one: Operation) -> Any:
            return {"client": f"c{chance.randint(0, 2)}"}

        return World(serve, draw, change, operations=9)

    return world
