"""The bodies of requests: of a client's request, and of a REQUEST that a learner forwards.

Rules this module keeps:

- Bytes after a body are ignored, as in ZooKeeper: a newer client may send more fields.
- A malformed request still has a number, and its client waits: the error carries the data that an answer needs.
- A check outside a multi is refused. ZooKeeper 3.8 logs it as a transaction that no server can read again: each server
  with it in the log fails to start.

Source: `ZooKeeperServer.processPacket`, `ByteBufferInputStream.byteBuffer2Record`, `Request.isValid`,
`UnimplementedRequestProcessor`, `PrepRequestProcessor.pRequest` (MARSHALLINGERROR for a malformed body).
"""

from refimpl.jute import JuteError, decode
from spec.tree.data import Record
from spec.tree.replies import Code
from spec.tree.requests import OPCODES, Check


class BadRequestError(JuteError):
    """A request with a readable header and an unreadable body.

    `code` is ZooKeeper's reply: UNIMPLEMENTED with zxid -1 for an unknown opcode, after which it closes the connection;
    MARSHALLING_ERROR for a malformed body, after which the connection continues. `session` is 0 on the client port,
    where the connection implies it.
    """

    def __init__(self, session: int, xid: int, code: Code, cause: JuteError) -> None:
        super().__init__(cause.record, cause.field, cause.offset, cause.what)
        self.session = session
        self.xid = xid
        self.code = code


def decode_body(session: int, xid: int, opcode: int, data: bytes, offset: int) -> Record:
    """Decode the record of a request, which starts at `offset`. Raises BadRequestError."""
    cls = OPCODES.get(opcode)
    if cls is None or cls is Check:
        problem = "check (13) outside a multi" if cls is Check else f"unknown opcode {opcode}"
        cause = JuteError("RequestHeader", "type", offset - 4, problem)
        raise BadRequestError(session, xid, Code.UNIMPLEMENTED, cause)
    try:
        return decode(cls, data, offset)[0]
    except JuteError as error:
        raise BadRequestError(session, xid, Code.MARSHALLING_ERROR, error) from None
