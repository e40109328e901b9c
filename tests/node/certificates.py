"""Certificates for the TLS of live servers, made by `openssl`."""

import shutil
import subprocess
from pathlib import Path


def self_signed(folder: Path, name: str) -> Path:
    """Write a key and its certificate for this name and 127.0.0.1: `key`, `trust.pem`, and both as `store.pem`."""
    openssl = str(shutil.which("openssl"))
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "trust.pem")]
    subprocess.run([*made, "-addext", "subjectAltName=IP:127.0.0.1", *files], check=True, capture_output=True)
    (folder / "store.pem").write_bytes((folder / "key").read_bytes() + (folder / "trust.pem").read_bytes())
    return folder
