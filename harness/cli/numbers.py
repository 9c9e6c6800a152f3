"""Which numbers an option takes, told to who gave it another: click's own words name its types."""

from __future__ import annotations

from typing import Any

import click


def in_our_words(wrong: click.UsageError) -> str:
    """What click says of a wrong call; of an option for a number: ``--seed: give a whole number of 0 or
    more, not 'abc'``."""
    kind = wrong.param.type if isinstance(wrong, click.BadParameter) and wrong.param is not None else None
    given, is_of_the_type, _ = wrong.message.partition(" is not ")
    if not isinstance(kind, click.types.IntParamType | click.types.FloatParamType) or not is_of_the_type:
        return wrong.format_message()
    assert isinstance(wrong, click.BadParameter)
    assert wrong.param is not None
    what = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
    name = wrong.param.opts[-1] if isinstance(wrong.param, click.Option) else wrong.param.human_readable_name
    return f"{name}: give {what}{_range(kind)}, not {given}"


def _range(kind: click.ParamType[Any]) -> str:
    """``from 1 to 5``, ``of 0 or more``, or nothing."""
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return ""
    match kind.min, kind.max:
        case None, None:
            return ""
        case None, most:
            return f" up to {most:g}"
        case least, None:
            return f" above {least:g}" if kind.min_open else f" of {least:g} or more"
        case least, most:
            return f" from {least:g} to {most:g}"
