"""Accounts between which money is moved: what all of them have together."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from wrackline.checkers.jepsen.origins import did
from wrackline.checkers.models.checker import Checker, Found, OperationError
from wrackline.checkers.models.protocol import ModelError, Operation, frozen, in_words, several
from wrackline.values import key_of


class BankTotals(Checker):
    """The balances of each read have the same sum, since money is moved and never made."""

    operations: ClassVar[Mapping[str, str]] = {
        "transfer": "transfer {:from a :to b :amount n}: a has n less and b has n more",
        "read": "read -> {a n, b m ..}: the balances of all accounts",
    }
    promise: ClassVar[str] = "constant in total"
    jepsen: ClassVar[str] = "jepsen.tests.bank/checker"
    cannot_see: ClassVar[str] = "which transfers a read shows, and in which order: the model bank sees that"

    def __init__(self, total: Any = None, accounts: Any = None, *, negative: bool = False) -> None:
        """``total``: the sum; None takes that of the first read. ``accounts``: those that there are; None
        takes any. ``negative``: whether a balance may be below 0. Raises ModelError."""
        if total is not None and not _is_number(total):
            raise ModelError(f"the total of bank-totals is a number, not {total!r:.40}")
        if accounts is not None and not isinstance(accounts, list | tuple):
            raise ModelError(f"the accounts of bank-totals are a list, not {accounts!r:.40}")
        self._total = None if total is None else Fraction(str(total))
        self._accounts = None if accounts is None else frozenset(map(frozen, accounts))
        self._negative = negative

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        first: int | None = None
        total = self._total
        lowest: Fraction | None = None
        highest: Fraction | None = None
        reads = 0
        for place, one in enumerate(operations):
            if one.f != "read" or not did(one):
                continue
            reads += 1
            if self._wrong(place, one, found):
                continue
            balances = _balances(place, one)
            total_here = _sum(balances.values())
            lowest = total_here if lowest is None else min(lowest, total_here)
            highest = total_here if highest is None else max(highest, total_here)
            if total is None:
                total, first = total_here, place
            elif total_here != total:
                should = f"the total is {_number(total)}"
                if first is not None:
                    should = (
                        f"it was {_number(total)} in the first read, of process {operations[first].process}"
                    )
                found.add(
                    "wrong total",
                    f"process {one.process} read balances of {_number(total_here)} in all; {should}",
                    *(() if first is None else (first,)),
                    place,
                )
        found.figures = {"reads": reads}
        if lowest is not None and highest is not None and lowest != highest:
            found.figures |= {"lowest total": _number(lowest), "highest total": _number(highest)}
        if not reads and not found.problems:
            found.undecided = "nobody read the balances"

    def _wrong(self, place: int, one: Operation, found: Found) -> bool:
        """Reports balances and accounts that are wrong; tells whether balances are missing, so that there
        is no sum, or whether there are accounts that should not be there."""
        balances = _balances(place, one)
        strange = [
            key
            for key in balances
            if self._accounts is not None and key_of(frozen(key)) not in self._accounts
        ]
        empty = [key for key, balance in balances.items() if balance is None]
        below = [key for key, balance in balances.items() if balance is not None and balance < 0]
        if strange:
            found.add("unexpected account", f"there is no account {several(strange)}", place)
        if empty:
            found.add("no balance", f"account {several(empty)} has a balance of nil", place)
        if below and not self._negative:
            found.add("negative balance", f"account {several(below)} has less than 0", place)
        return bool(strange or empty)


def _balances(place: int, one: Operation) -> Mapping[Any, Any]:
    if not isinstance(one.result, Mapping):
        raise OperationError(place, f":read needs a map of accounts, not {in_words(one.result)}")
    for account, balance in one.result.items():
        if balance is not None and not _is_number(balance):
            what = f"account {in_words(account)} has {in_words(balance)}"
            raise OperationError(place, f":read needs numbers as balances; {what}")
    return one.result


def _sum(balances: Collection[Any]) -> Fraction:
    """The exact sum: of a float, what it is written as."""
    if all(type(balance) is int for balance in balances):
        return Fraction(sum(balances))
    return sum((Fraction(str(balance)) for balance in balances), Fraction())


def _is_number(value: Any) -> bool:
    real = isinstance(value, int | float | Decimal | Fraction) and not isinstance(value, bool)
    return real and math.isfinite(value)


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"
