"""The error of bytes that do not encode a record, or of a record that cannot be encoded."""


class JuteError(ValueError):
    """Bytes that do not encode the expected record, or a value that the wire cannot carry.

    Names the record, the field (empty: the record as a whole), the offset in bytes from the start of the input to
    decode (-1 when encoding), and the fault.
    """

    def __init__(self, record: str, field: str, offset: int, what: str) -> None:
        where = f"{record}.{field}" if field else record
        super().__init__(f"{where} at byte {offset}: {what}" if offset >= 0 else f"{where}: {what}")
        self.record = record
        self.field = field
        self.offset = offset
        self.what = what

    def within(self, outer: str, shift: int = 0) -> "JuteError":
        """Return this error for a record inside `outer`, where its bytes start `shift` bytes later."""
        offset = self.offset + shift if self.offset >= 0 else -1
        return JuteError(f"{outer} > {self.record}", self.field, offset, self.what)
