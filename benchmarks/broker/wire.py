"""What a hot message costs to write, by hand (`wrackline.broker.wire.fast`) and by kio, and what kio takes to
read it.

    python benchmarks/broker/wire.py

Microseconds of processor time, the best of several rounds, so that other work on the machine matters little.
One partition, 1 KiB of records: what an acks=all producer sends one at a time.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire import fast
from wrackline.broker.wire.apis import BY_KEY
from wrackline.broker.wire.schema import request_schema, response_schema

_PRODUCE, _FETCH = 0, 1
_TP = TopicPartition("log", 2)
_ID = UUID(int=99)
_FETCHES = FetchRequest(
    500, 1, 10_485_760, (FetchPartition(_TP, 4_711, 1_048_576, 3, 3, 0, _ID),), 2, 17, 5, 12
)
_FETCHED = FetchResponse(
    (FetchResult(_TP, ErrorCode.none, 4_711, 4_711, 0, records=bytes(1_100), topic_id=_ID),), session_id=5
)
_PRODUCED = ProduceResponse((ProduceResult(_TP, base_offset=4_711, log_start=0),))


def _produce_body() -> bytes:
    schema = request_schema(_PRODUCE, 9)
    data = {"index": _TP.partition, "records": bytes(1_100)}
    topic = {"name": _TP.topic, "partition_data": (data,)}
    return schema.filled(
        transactional_id=None, acks=-1, timeout=timedelta(milliseconds=30_000), topic_data=(topic,)
    )


def names(topic_id: UUID) -> str | None:
    return _TP.topic if topic_id == _ID else None


def best_us(action: Callable[[], object], number: int = 2_000, rounds: int = 9) -> float:
    return min(timeit.repeat(action, number=number, repeat=rounds)) / number * 1e6


def pairs() -> dict[str, tuple[Callable[[], object] | None, Callable[[], object]]]:
    """What is done -> by hand (None: it is kio's alone), by kio."""
    produce, fetch = _produce_body(), fast.fetch_request(_FETCHES)
    fetched = fast.fetch_response_13(_FETCHES, _FETCHED)
    produces, fetches = request_schema(_PRODUCE, 9), request_schema(_FETCH, 17)
    produced_schema, fetched_schema = response_schema(_PRODUCE, 9), response_schema(_FETCH, 17)
    api, fetch_api = BY_KEY[_PRODUCE], BY_KEY[_FETCH]
    encode, decode = fetch_api.encode_request, fetch_api.decode_response
    request = ProduceRequest(-1, 30_000, ())
    return {
        "read Produce": (
            None,
            lambda: api.decode_request(produces.read(produce, 0), names),
        ),
        "write its answer": (
            lambda: fast.produce_response(request, _PRODUCED),
            lambda: produced_schema.write(api.encode_response(produced_schema, request, _PRODUCED)),
        ),
        "write a follower's Fetch": (
            lambda: fast.fetch_request(_FETCHES),
            lambda: fetches.write(encode(fetches, _FETCHES)),
        ),
        "read it": (
            None,
            lambda: fetch_api.decode_request(fetches.read(fetch, 0), names),
        ),
        "write its answer, 1 KiB": (
            lambda: fast.fetch_response_13(_FETCHES, _FETCHED),
            lambda: fetched_schema.write(fetch_api.encode_response(fetched_schema, _FETCHES, _FETCHED)),
        ),
        "read that": (
            None,
            lambda: decode(fetched_schema.read(fetched, 0), _FETCHES),
        ),
    }


def main() -> None:
    for name, (by_hand, by_kio) in pairs().items():
        kio_us = best_us(by_kio)
        if by_hand is None:
            print(f"{name:<26} {'':17}   kio {kio_us:6.1f} us")
            continue
        assert by_hand() == by_kio()
        hand_us = best_us(by_hand)
        print(f"{name:<26} by hand {hand_us:6.1f} us   kio {kio_us:6.1f} us   {kio_us / hand_us:4.1f} times")


if __name__ == "__main__":
    main()
