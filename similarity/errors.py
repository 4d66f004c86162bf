"""Every error that this library raises on purpose. Each message says what to do next."""


class SimilarityError(Exception):
    """Base of all errors of this library."""


class InvalidCompany(SimilarityError):
    """A company record that breaks a rule; `field` names the offending field."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidBundle(SimilarityError):
    """A model bundle that is missing, damaged, tampered with or not self-contained."""


class EncoderMismatch(SimilarityError):
    """Vectors of one encoder were offered to a generation that holds another's."""


class EncodingFailed(SimilarityError):
    """The encoder raised on a batch of texts, one of which may be poison."""


class UnknownGeneration(SimilarityError):
    """The named generation does not exist (any more)."""


class NoLiveGeneration(SimilarityError):
    """The index holds no live generation yet."""


class GenerationConflict(SimilarityError):
    """The generation's state does not allow this step."""


class LeaseHeld(SimilarityError):
    """Another process holds the lease; the message says which and until when."""


class LeaseLost(SimilarityError):
    """The lease has expired, was released, or was taken over by another process."""


class InvalidFilter(SimilarityError):
    """A filter names an unknown field or has no values."""


class IndexUnavailable(SimilarityError):
    """The store behind the index cannot be opened or does not answer.

    `reason` says what is wrong without naming a file or a host, for people who may not see these; often empty.
    """

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class AuditUnavailable(SimilarityError):
    """The audit record cannot be written, so nothing may be changed."""


class InvalidInput(SimilarityError):
    """A file, a column mapping or an option that cannot be used as given."""
