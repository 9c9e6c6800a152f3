"""The stream of operations has a rate, a mix and a seed, and copes with a stall."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

import pytest

from wrackline.workloads.pace import ROOM_S, Due, Generator, Lanes, Slot, Spacing

MIX = {"send": 8.0, "poll": 3.0, "end": 1.0}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.looked_at: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        self.looked_at()
        return self.now


def due_by(generator: Generator, clock: Clock, f: str, seconds: float) -> list[Slot]:
    """What an eager client is handed until then. The generator looks at the clock once for a slot that is
    due, and again and again while it waits for one: that is the end, however slow the machine."""
    clock.now += seconds
    taken: list[Slot] = []
    looks = itertools.count()
    clock.looked_at = lambda: generator.stop() if next(looks) > len(taken) + 2 else None
    while (slot := generator.take(f)) is not None:
        taken.append(slot)
    return taken


def started(rate: float, seed: int = 1, **options: object) -> tuple[Generator, Clock]:
    clock = Clock()
    generator = Generator(rate, MIX, seed, clock=clock, catch_up_s=1000, **options)  # type: ignore[arg-type]
    generator.start()
    return generator, clock


def test_each_kind_gets_its_share_of_the_rate() -> None:
    counts = {}
    for f in MIX:
        generator, clock = started(120)
        counts[f] = len(due_by(generator, clock, f, 10))
    assert counts == {
        "send": pytest.approx(800, abs=1),
        "poll": pytest.approx(300, abs=1),
        "end": pytest.approx(100, abs=1),
    }


@pytest.mark.parametrize("spacing", list(Spacing))
def test_one_seed_one_stream(spacing: Spacing) -> None:
    def stream(seed: int) -> list[Slot]:
        generator, clock = started(200, seed, spacing=spacing)
        return due_by(generator, clock, "send", 5)

    assert stream(5) == stream(5)
    assert [slot.bits for slot in stream(5)] != [slot.bits for slot in stream(6)]


def test_poisson_keeps_the_rate_on_average() -> None:
    generator, clock = started(1200, spacing=Spacing.POISSON)
    taken = due_by(generator, clock, "send", 10)
    assert len(taken) == pytest.approx(8000, rel=0.05)
    gaps = [b.due_s - a.due_s for a, b in itertools.pairwise(taken)]
    assert max(gaps) > 4 * (sum(gaps) / len(gaps))


def test_a_stall_is_caught_up_with_only_so_far() -> None:
    clock = Clock()
    generator = Generator(100, {"send": 1}, 1, clock=clock, catch_up_s=0.5)
    generator.start()
    taken = due_by(generator, clock, "send", 60)
    assert len(taken) == pytest.approx(50, abs=2)
    assert sum(generator.left_out["send"]) == pytest.approx(5950, abs=2)
    assert taken[0].due_s == pytest.approx(59.5, abs=0.02)


def taken_in_a_second(rate: float) -> tuple[list[int], float]:
    """What four clients took, and how long they had, in seconds."""
    generator = Generator(rate, {"send": 1}, 1)
    taken: list[int] = []

    def client() -> None:
        while (slot := generator.take("send")) is not None:
            taken.append(slot.number)
            time.sleep(0.002)

    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    assert taken == []  # nothing before the start
    began = time.monotonic()
    generator.start()
    time.sleep(1.0)
    generator.stop()
    took_s = time.monotonic() - began
    for thread in clients:
        thread.join(5)
    return taken, took_s


def test_idle_clients_share_the_asked_rate_in_real_time() -> None:
    reached = []
    for _ in range(5):
        taken, took_s = taken_in_a_second(400)
        assert sorted(taken) == list(range(len(taken)))
        reached.append(len(taken) / took_s)
        assert reached[-1] <= 400 * 1.15
        # Whatever stops this process for a while, its own garbage collector too, can only leave fewer.
        if reached[-1] >= 400 * 0.85:
            return
    raise AssertionError(f"400 a second were asked for, {reached} were taken")


def test_rate_zero_is_as_fast_as_clients_take() -> None:
    generator = Generator(0, MIX, 1)
    generator.start()
    assert [generator.take("poll").number for _ in range(1000)] == list(range(1000))  # type: ignore[union-attr]
    generator.stop("poll")
    assert generator.take("poll") is None
    assert generator.take("send") is not None


def test_a_kind_without_a_share_has_no_slots() -> None:
    generator = Generator(10, {"send": 1, "poll": 0}, 1)
    generator.start()
    assert generator.take("poll") is None


def test_choices_of_a_slot_are_spread_and_repeatable() -> None:
    generator, clock = started(1200)
    taken = due_by(generator, clock, "send", 10)
    for salt in (0, 1, 7):
        counts = [0] * 4
        for slot in taken:
            assert slot.choice(4, salt) == slot.choice(4, salt)
            counts[slot.choice(4, salt)] += 1
        assert min(counts) > len(taken) / 4 * 0.85
    both = {(slot.choice(4, 0), slot.choice(4, 1)) for slot in taken}
    assert len(both) == 16


@pytest.mark.parametrize(("rate", "mix"), [(-1, {"send": 1}), (1, {"send": 0}), (1, {"send": -1, "poll": 2})])
def test_nonsense_is_refused(rate: float, mix: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no stream"):
        Generator(rate, mix, 1)


def test_a_dead_partition_leaves_the_healthy_ones_their_load() -> None:
    """Eight clients, four partitions; whoever sends to partition 0 waits until the end of the test."""
    generator = Generator(200, {"send": 1}, 1, lanes={"send": Lanes(4, 8)})
    dead = threading.Event()
    taken: list[list[int]] = [[], [], [], []]

    def client() -> None:
        while (slot := generator.take("send")) is not None:
            taken[slot.lane].append(slot.number)
            if slot.lane == 0:
                dead.wait(60)
            generator.done(slot)

    clients = [threading.Thread(target=client) for _ in range(8)]
    for thread in clients:
        thread.start()
    generator.start()
    time.sleep(2.0)
    left_out = generator.left_out["send"]
    generator.stop()
    dead.set()
    for thread in clients:
        thread.join(5)
    assert len(taken[0]) == 2  # its own share of the clients, and no more
    assert left_out[0] > 10
    assert left_out[1:] == [0, 0, 0]
    assert min(map(len, taken[1:])) > 60


def under_way(lanes: Lanes, dead: int) -> list[int]:
    """How many operations of each partition are under way when those of the first ``dead`` never end."""
    generator = Generator(0, {"send": 1}, 1, lanes={"send": lanes})
    generator.start()
    threading.Timer(0.3, generator.stop).start()
    counts = [0] * lanes.count
    for _ in range(10_000):
        slot = generator.take("send")
        if slot is None:
            break
        if slot.lane < dead:
            counts[slot.lane] += 1
        else:
            generator.done(slot)
    return counts


def test_however_many_partitions_are_dead_each_other_one_keeps_its_share() -> None:
    assert under_way(Lanes(4, 8), 3) == [2, 2, 2, 0]
    spare = under_way(Lanes(4, 7), 3)  # one each is promised to all, three go where they are wanted
    assert (sum(spare), spare[3]) == (6, 0)
    assert under_way(Lanes(4, 4), 3) == [1, 1, 1, 0]
    assert under_way(Lanes(4, 2), 1) == [1, 0, 0, 0]  # fewer clients than partitions: nobody takes two
    assert under_way(Lanes(1, 5), 1) == [5]


def test_a_lane_is_the_choice_of_the_slot() -> None:
    clock = Clock()
    generator = Generator(100, {"send": 1}, 1, lanes={"send": Lanes(4, 1000)}, clock=clock, catch_up_s=1000)
    generator.start()
    taken = due_by(generator, clock, "send", 5)
    assert [slot.number for slot in taken] == list(range(len(taken)))
    assert all(slot.lane == slot.choice(4) for slot in taken)


def test_a_client_that_does_not_wait_takes_what_is_due_and_is_told_when_the_next_is() -> None:
    clock = Clock()
    generator = Generator(10, {"send": 1}, 1, clock=clock, catch_up_s=1000)
    assert generator.take_due("send", 9) is None  # not started
    generator.start()
    clock.now += 0.45
    first = generator.take_due("send", 3)
    rest = generator.take_due("send", 9)
    assert first is not None
    assert rest is not None
    assert [slot.number for slot in (*first.slots, *rest.slots)] == [0, 1, 2, 3, 4]
    assert len(first.slots) == 3
    assert rest.next_s == pytest.approx(0.05)
    generator.stop()
    assert generator.take_due("send", 9) is None


def test_whoever_takes_many_at_a_time_leaves_each_partition_its_share() -> None:
    generator = Generator(0, {"send": 1}, 1, lanes={"send": Lanes(4, 8)})
    generator.start()
    taken = generator.take_due("send", 100)
    assert taken is not None
    assert len(taken.slots) == 8
    assert generator.take_due("send", 1) == Due([], ROOM_S)
    dead = [slot for slot in taken.slots if slot.lane == 0]
    generator.done(*(slot for slot in taken.slots if slot.lane != 0))
    for _ in range(50):
        again = generator.take_due("send", 100)
        assert again is not None
        dead += [slot for slot in again.slots if slot.lane == 0]
        generator.done(*(slot for slot in again.slots if slot.lane != 0))
    assert len(dead) == 2


def test_an_operation_that_ends_wakes_a_client_that_sleeps_for_room() -> None:
    generator = Generator(0, {"send": 1}, 1, lanes={"send": Lanes(1, 1)})
    generator.start()
    taken = generator.take_due("send", 5)
    assert taken is not None
    found: list[Slot | None] = []
    sleeper = threading.Thread(target=lambda: found.append(generator.take("send")))
    sleeper.start()
    generator.done(*taken.slots)
    sleeper.join(10)
    assert [slot.number for slot in found if slot is not None] == [1]
