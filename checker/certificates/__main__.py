"""Checks each script below a folder with its certificate: `python -m checker.certificates DIR`."""

import sys
from pathlib import Path

from checker.certificates.proof import check
from checker.certificates.terms import RejectedError


def rejection(path: Path) -> str | None:
    """The reason that a script has no accepted certificate; None if it has one."""
    certificate = path.with_suffix(".certificate")
    if not certificate.is_file():
        return "it has no certificate"
    try:
        check(path.read_text("utf-8"), certificate.read_text("utf-8"))
    except (RejectedError, OSError, UnicodeDecodeError) as error:
        return str(error)
    return None


def main(folder: Path) -> int:
    """Print a line for each script without an accepted certificate, and the numbers; 0 if all have one, else 1."""
    scripts = sorted(path for path in folder.rglob("*.smt2") if path.is_file())
    accepted = 0
    for path in scripts:
        reason = rejection(path)
        if reason is not None:
            print(f"rejected: {path.relative_to(folder)}: {reason}")
        accepted += reason is None
    print(f"{accepted} of {len(scripts)} scripts have an accepted certificate")
    return int(not scripts or accepted < len(scripts))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("error: name one folder with scripts and certificates")
    sys.exit(main(Path(sys.argv[1])))
