"""What goes wrong between Berth and a kube-apiserver. The type says what can be done about it."""

import msgspec

from berth.errors import BerthError, NotFoundError


class CredentialsError(BerthError):
    """Who we are, or where the API server is, can't be told."""


class ConnectionLostError(BerthError):
    """No answer came.

    Attributes
    ----------
    was_sent : bool
        Whether the request may have reached the API server: it may have been carried out then.
    """

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class ApiError(BerthError):
    """The API server's answer is an error (``metav1.Status``).

    Attributes
    ----------
    status : int
        Of HTTP.
    reason : str
        One word, such as ``AlreadyExists``; empty where the server gives none.
    message : str
        The server's words.
    retry_after_s : float or None
        When to try again, where the server says so. [seconds]
    """

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status} {reason or 'error'}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s


class ObjectMissingError(ApiError, NotFoundError):
    """404: there is no such object, or no such kind."""


class ConflictError(ApiError):
    """409: the object exists already, or is not what the request took it for."""


class ExpiredError(ApiError):
    """410: a resource version or a page token is too old."""


class Details(msgspec.Struct, rename="camel"):
    """More about an error."""

    retry_after_seconds: int = 0


class Status(msgspec.Struct, rename="camel"):
    """The body of an error, and of a watch's ``ERROR`` event."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


_KINDS = {404: ObjectMissingError, 409: ConflictError, 410: ExpiredError}
_MAX_TEXT = 200
_decoder = msgspec.json.Decoder(Status)


def error_of(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Make the error of an answer.

    Parameters
    ----------
    body : bytes
        A ``Status``, or any other text: what stands before the API server may answer in its stead.
    retry_after : str, optional
        The header; dates are passed over, for the API server gives seconds.
    """
    try:
        told = _decoder.decode(body)
    except msgspec.DecodeError:
        told = Status(message=body.decode("utf-8", "replace").strip()[:_MAX_TEXT])
    seconds = int(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
    if seconds is None and told.details is not None:
        seconds = told.details.retry_after_seconds or None
    kind = _KINDS.get(status, ApiError)
    return kind(status, told.reason, told.message or "no message", seconds)
