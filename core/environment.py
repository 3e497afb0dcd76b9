"""What programs that Foldmark starts get of its environment: little, so that nothing in it leads them astray."""

from __future__ import annotations

from collections.abc import Collection, Mapping

_KEPT = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "TEMP", "TMP"})
_KEPT_PREFIXES = ("LC_", "XDG_")


def small(env: Mapping[str, str], more: Collection[str] = (), prefixes: tuple[str, ...] = ()) -> dict[str, str]:
    """What says who and where one is, and what else a program needs: by whole names and by how names begin.

    Names are given in capitals; those of an environment may be written small, as `http_proxy` is.
    """
    begin = (*_KEPT_PREFIXES, *prefixes)
    return {k: v for k, v in env.items() if (name := k.upper()) in _KEPT or name in more or name.startswith(begin)}
