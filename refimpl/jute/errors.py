"""What is wrong with bytes that should be a record, or with a record that should become bytes."""


class JuteError(ValueError):
    """Bytes that are no such record, or a value that the wire cannot carry.

    Names the record, the field (empty: the record as a whole), the offset in bytes from the beginning of what was
    given to be decoded (-1 when encoding), and what is wrong.
    """

    def __init__(self, record: str, field: str, offset: int, what: str) -> None:
        where = f"{record}.{field}" if field else record
        super().__init__(f"{where} at byte {offset}: {what}" if offset >= 0 else f"{where}: {what}")
        self.record = record
        self.field = field
        self.offset = offset
        self.what = what

    def within(self, outer: str, shift: int = 0) -> "JuteError":
        """The same error of a record that is part of `outer`, whose bytes begin `shift` bytes later there."""
        offset = self.offset + shift if self.offset >= 0 else -1
        return JuteError(f"{outer} > {self.record}", self.field, offset, self.what)
