"""Values of tables (Excel, Parquet, data frames) as the types that a record may have."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np

EXACT_IN_EXCEL = 10**15
"""Excel keeps 15 digits of a number."""


@dataclass(frozen=True, slots=True)
class UnreadableValue:
    """A value that Python cannot represent, and the reason. It has an effect only if its column is used."""

    reason: str


def plain_value(value: object) -> object:
    """Return a decimal as a number, a date, a time or a duration as text, an array as a list; others as they are.

    Dates and times are in ISO 8601; midnight without a time zone is a date. A missing date (NaT) is None.

    >>> plain_value(Decimal("12.50")), plain_value(Decimal("3.00")), plain_value(datetime(2020, 1, 31))
    (12.5, 3, '2020-01-31')
    >>> plain_value(np.array(["beer", "cider"], dtype=object))
    ['beer', 'cider']
    """
    if isinstance(value, Decimal):
        value = Decimal("nan") if value.is_snan() else value  # a signalling one cannot be converted
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if not isinstance(value, date | time | timedelta):
        # pandas reads lists of Parquet as arrays.
        return list(map(plain_value, value.tolist())) if isinstance(value, np.ndarray) else value
    if value != value:  # noqa: PLR0124  # NaT, which pandas makes a datetime
        return None
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, datetime) and value.time() == time() and value.tzinfo is None:
        return value.date().isoformat()
    return value.isoformat()
