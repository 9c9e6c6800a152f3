"""Mutated frames of real clients, against the decoders and against real nodes: nothing but a connection may
end.

    python benchmarks/broker/fuzz.py                                 # 100,000 a kind, against the decoders
    python benchmarks/broker/fuzz.py --nodes --mutations 10000       # against a broker and a controller
    python benchmarks/broker/fuzz.py --api Fetch --api Fetch-answer  # of these alone
    python benchmarks/broker/fuzz.py --api Fetch --seed 1 --only 4711   # one again, as a failure tells you to

Decoders run in a process of their own, which may end or hang without taking the count along. Nodes are sent
what a decoder takes for a message, and one in a hundred of the others. Exit code 1 when anything was found.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

# What mutates and what is shot at are the tests' own.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.broker.clients.under_fire import Hit, Shot, UnderFire
from tests.broker.wire.mutations import Case, Readers, cases, mutated
from wrackline.broker.wire.api import Listener

_HANG_S = 30.0
_SLOW_S = 1.0
_ONE_IN = 100
"""Of the frames that no decoder takes, this one is sent to a node too."""


@dataclass(frozen=True, slots=True)
class Found:
    api: str
    number: int
    what: str


def main() -> int:
    options = _parser().parse_args()
    every = cases()
    unknown = set(options.api) - every.keys()
    if unknown:
        print(f"fuzz: no such kind of frame: {', '.join(sorted(unknown))}; there are {', '.join(every)}")
        return 2
    chosen = {api: of for api, of in every.items() if not options.api or api in options.api}
    frames = [case.frame for of in every.values() for case in of]
    run = _Run(options.seed, frames, [options.only] if options.only is not None else range(options.mutations))
    found = run.nodes(chosen) if options.nodes else run.decoders(chosen)
    count = len(chosen) * len(run.numbers)
    print(f"{count} mutations of {len(chosen)} kinds of frame, seed {options.seed}: {len(found)} found")
    return 1 if found else 0


class _Run:
    def __init__(self, seed: int, frames: list[bytes], numbers: range | list[int]) -> None:
        self._seed = seed
        self._frames = frames
        self.numbers = numbers
        self._found: list[Found] = []

    def _tell(self, api: str, number: int, what: str, *, nodes: bool = False) -> None:
        again = f"--api {api} --seed {self._seed} --only {number}{' --nodes' if nodes else ''}"
        print(f"FOUND {api} {number}: {what}\n  again: python benchmarks/broker/fuzz.py {again}", flush=True)
        self._found.append(Found(api, number, what))

    # --- decoders ------------------------------------------------------------------------------------------

    def decoders(self, chosen: dict[str, list[Case]]) -> list[Found]:
        for api, of in chosen.items():
            begun, at, taken = time.monotonic(), 0, 0
            while at < len(self.numbers):
                at, more = self._decoded(api, of, at)
                taken += more
            took = time.monotonic() - begun
            print(f"{api}: {at} mutations in {took:.1f} s, {taken / at:.0%} are messages", flush=True)
        return self._found

    def _decoded(self, api: str, of: list[Case], start: int) -> tuple[int, int]:
        """(how far a process of its own came, how many it took for messages)"""
        position = multiprocessing.Value("q", start)
        taken = multiprocessing.Value("q", 0)
        # Forked: a new interpreter for every chunk would take longer than the chunk.
        fork = multiprocessing.get_context("fork")
        process = fork.Process(target=self._decode_all, args=(of, position, taken))
        process.start()
        last, since = start, time.monotonic()
        while process.is_alive():
            process.join(0.2)
            if position.value != last:
                last, since = position.value, time.monotonic()
            elif time.monotonic() - since > _HANG_S:
                process.kill()
                process.join()
        if process.exitcode != 0:
            code = process.exitcode or 0
            how = f"signal {-code}" if code < 0 else f"code {code}"
            self._tell(api, self.numbers[position.value], f"the process ended with {how}")
            return position.value + 1, taken.value
        return position.value, taken.value

    def _decode_all(self, of: list[Case], position: Synchronized[int], taken: Synchronized[int]) -> None:
        readers = Readers()
        while position.value < len(self.numbers):
            number = self.numbers[position.value]
            case, frame = mutated(of, self._frames, self._seed, number)
            begun = time.process_time()
            try:
                taken.value += bool(readers.understood(case, frame))
            except Exception:
                print(f"  the frame: {frame.hex()}", flush=True)
                raise
            took = time.process_time() - begun
            if took > _SLOW_S:
                print(f"SLOW {of[0].api} {number}: {took:.1f} s of processor time", flush=True)
            position.value += 1

    # --- nodes ----------------------------------------------------------------------------------------------

    def nodes(self, chosen: dict[str, list[Case]]) -> list[Found]:
        """Requests only: answers are for who asked, and nobody asks this process."""
        readers = Readers()
        with tempfile.TemporaryDirectory(prefix="wrackline-fuzz-") as folder:
            target = UnderFire(Path(folder))
            try:
                for api, of in chosen.items():
                    if of[0].request is None:
                        self._sent(api, of, readers, target)
            finally:
                target.close()
        return self._found

    def _sent(self, api: str, of: list[Case], readers: Readers, target: UnderFire) -> None:
        begun, sent = time.monotonic(), 0
        target.start()
        for number, frame, takers in self._worth_sending(of, readers):
            for listener in takers:
                target.fire(Shot(listener, number, frame))
                sent += 1
            self._tell_hits(api, target.hits())
        self._tell_hits(api, target.hits(at_last=True))
        took, silence = time.monotonic() - begun, target.longest_silence_s
        print(
            f"{api}: {sent} frames sent in {took:.1f} s; longest silence {silence:.2f} s,"
            f" most memory {target.largest_mib} MiB",
            flush=True,
        )

    def _tell_hits(self, api: str, hits: list[Hit]) -> None:
        for hit in hits:
            self._tell(api, hit.number, hit.what, nodes=True)

    def _worth_sending(self, of: list[Case], readers: Readers) -> Iterator[tuple[int, bytes, list[Listener]]]:
        for number in self.numbers:
            case, frame = mutated(of, self._frames, self._seed, number)
            takers = readers.understood(case, frame)
            if not takers and (number % _ONE_IN == 0 or len(self.numbers) == 1):
                takers = list(Listener)
            yield number, frame, takers


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--mutations", type=int, default=100_000, help="of every kind of frame (default %(default)s)"
    )
    parser.add_argument(
        "--api", action="append", default=[], metavar="NAME", help="this one, again for more; all without"
    )
    parser.add_argument("--seed", type=int, default=1, help="default %(default)s")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this mutation alone")
    parser.add_argument(
        "--nodes", action="store_true", help="against real nodes instead of the decoders alone"
    )
    return parser


if __name__ == "__main__":
    # Whoever makes too much of a frame is to fail here, and not to take the machine's memory.
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    sys.exit(main())
