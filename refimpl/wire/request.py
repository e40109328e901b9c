"""What is asked, as bytes: the body of a client's request, and of a REQUEST that a learner forwards.

Rules this module keeps:

- What follows a body is ignored, as ZooKeeper ignores it: a newer client may say more.
- A request that cannot be read still has a number, and its client waits: the error carries what an answer needs.
- A check outside a multi is refused. ZooKeeper 3.8 makes a transaction of it that no server can read again: each one
  that has it in its log fails to start.

Source: `ZooKeeperServer.processPacket`, `ByteBufferInputStream.byteBuffer2Record`, `Request.isValid`,
`UnimplementedRequestProcessor`, `PrepRequestProcessor.pRequest` (MARSHALLINGERROR for a body that is broken).
"""

from refimpl.jute import JuteError, decode
from spec.tree.fields import Record
from spec.tree.replies import Code
from spec.tree.requests import OPCODES, Check


class BadRequestError(JuteError):
    """A request whose header could be read and whose body could not.

    `code` is what ZooKeeper answers: UNIMPLEMENTED with zxid -1 for an unknown opcode, after which it closes the
    connection; MARSHALLING_ERROR for a broken body, after which the connection goes on. `session` is 0 on the client
    port, where the connection says it.
    """

    def __init__(self, session: int, xid: int, code: Code, cause: JuteError) -> None:
        super().__init__(cause.record, cause.field, cause.offset, cause.what)
        self.session = session
        self.xid = xid
        self.code = code


def decode_body(session: int, xid: int, opcode: int, data: bytes, offset: int) -> Record:
    """The record of a request, which begins at `offset`. Raises BadRequestError."""
    cls = OPCODES.get(opcode)
    if cls is None or cls is Check:
        what = "check (13) outside a multi" if cls is Check else f"unknown opcode {opcode}"
        cause = JuteError("RequestHeader", "type", offset - 4, what)
        raise BadRequestError(session, xid, Code.UNIMPLEMENTED, cause)
    try:
        return decode(cls, data, offset)[0]
    except JuteError as error:
        raise BadRequestError(session, xid, Code.MARSHALLING_ERROR, error) from None
