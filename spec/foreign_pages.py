"""The judgement of a request over HTTP by its sender: programs are answered, pages of other sites are not.

A browser sends requests of any page to any address, and shows a page the answers of the host that the page is from. A
name that resolves to this machine would therefore open a port on the loopback interface to a page of others.

Source: Fetch Metadata (Sec-Fetch-Site); RFC 6454 (Origin); RFC 9110, 15.5.20 (421).
"""

from collections.abc import Collection, Mapping
from http import HTTPStatus


def refused_page(headers: Mapping[str, str], hosts: Collection[str] | None, *, is_front: bool) -> HTTPStatus | None:
    """The status with which a request is refused; None if it is answered.

    `headers` have names in lower case. `hosts` are the right values of Host, names with ports; None if any is right.
    Links of other sites may lead to the front page, which changes nothing.
    """
    host, origin = headers.get("host"), headers.get("origin")
    if hosts is not None and host not in hosts:
        return HTTPStatus.MISDIRECTED_REQUEST
    if origin is not None and origin not in [f"http://{name}" for name in (hosts or (host,))]:
        return HTTPStatus.FORBIDDEN
    if not is_front and headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
        return HTTPStatus.FORBIDDEN
    return None
