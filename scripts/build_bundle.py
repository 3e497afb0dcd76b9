"""Builds the bundle that Claude Desktop installs: the program, its manifest and its picture in one file.

    python -m scripts.build_bundle [FOLDER]

The same sources give the same bytes.  Desktop brings Python and installs what pyproject.toml names.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "foldmark.mcpb"
PACKAGES = ("core", "cli", "mcp_server")
FILES = ("foldmark.py", "pyproject.toml", "README.md", "LICENSE")
_EPOCH = (2026, 1, 1, 0, 0, 0)


def main(args: list[str]) -> int:
    """Write the bundle into a folder (build/)."""
    folder = Path(args[0]) if args else ROOT / "build"
    folder.mkdir(parents=True, exist_ok=True)
    print(build(folder / NAME))
    return 0


def build(path: Path) -> Path:
    """Write the bundle; an older one gives way."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in sorted(contents().items()):
            bundle.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return path


def contents() -> dict[str, bytes]:
    """Everything in it, by name."""
    found = {name: (ROOT / name).read_bytes() for name in FILES}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.parent.name != "bundle":
                found[path.relative_to(ROOT).as_posix()] = path.read_bytes()
    found["manifest.json"] = (ROOT / "mcp_server" / "bundle" / "manifest.json").read_bytes()
    found["icon.png"] = (ROOT / "mcp_server" / "plugin" / ".claude-plugin" / "icon.png").read_bytes()
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
