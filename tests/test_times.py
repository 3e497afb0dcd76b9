"""Times as transcripts have them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from core.times import stamp, time_from


@pytest.mark.parametrize(
    "text", ["2026-03-01T10:00:00.5Z", "2026-03-01T12:00:00.500+02:00", "2026-03-01T10:00:00.500000"]
)
def test_a_time_is_in_utc_whatever_its_zone(text: str) -> None:
    assert time_from(text) == datetime(2026, 3, 1, 10, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "yesterday", "0001-01-01T00:00:00+02:00", "9999-12-31T23:59:59-02:00"])
def test_what_is_no_time_in_utc_is_none(text: str) -> None:
    assert time_from(text) is None


def test_rows_have_times_in_utc() -> None:
    time = datetime(2026, 3, 1, 12, 0, 0, 500_999, tzinfo=timezone(timedelta(hours=2)))

    assert stamp(time) == "2026-03-01T10:00:00.500Z"
    assert stamp(time, "seconds") == "2026-03-01T10:00:00Z"
