"""Requests of a local page: the decoder, and the error for a request that cannot be answered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TypeVar

import msgspec

T = TypeVar("T")


class BadRequestError(Exception):
    """A request that cannot be answered; the message gives the reason and the correction.

    `field` is the part of the page that it is about; empty if it is about none.
    """

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, field: str = "") -> None:
        super().__init__(message)
        self.status, self.field = status, field


@contextmanager
def slot(slots: threading.Semaphore, busy: str) -> Iterator[None]:
    """One of the slots for concurrent work. Raises BadRequestError with that message if all are taken."""
    if not slots.acquire(blocking=False):
        raise BadRequestError(busy, HTTPStatus.TOO_MANY_REQUESTS)
    try:
        yield
    finally:
        slots.release()


def read_request(body: bytes, kind: type[T]) -> T:
    """Decode the body of a request. Raises BadRequestError."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequestError(f"the request is not as it should be: {error}") from None
