"""Times as transcripts have them: ISO 8601 in UTC, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime


def time_from(text: str) -> datetime | None:
    """A time in UTC, which one without a zone is taken to be in; None for what is no time."""
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # OverflowError: at the ends of the calendar
        return None


def stamp(time: datetime, timespec: str = "milliseconds") -> str:
    """A time as rows have it."""
    return time.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
