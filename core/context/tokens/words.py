"""How numbers of tokens are written, on every surface."""

from __future__ import annotations


def tokens(count: int | None) -> str:
    """Write a number of tokens: 950, 18.2k, 181k, 1.2M; "-" for an unknown one."""
    if count is None:
        return "-"
    if count < 1_000:
        return str(count)
    if count < 999_500:
        return f"{count / 1_000:.{1 if count < 99_950 else 0}f}k"
    return f"{count / 1_000_000:.1f}M"
