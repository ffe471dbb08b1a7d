"""The exception hierarchy. "Does not fit" is a verdict, never one of these."""


class BerthError(Exception):
    """Something that the caller can be told in words: bad input, an unusable file, an unknown name."""


class InputError(BerthError, ValueError):
    """What was given is not what was expected; the message says where, what, and what would do."""

    def __init__(self, path: str, value: object, expected: str) -> None:
        self.path = path
        self.value = value
        self.expected = expected
        super().__init__(f"{path}: {value!r} is not {expected}")


class NotFoundError(BerthError, LookupError):
    """A named thing is not there."""
