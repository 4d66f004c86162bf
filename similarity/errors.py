"""The errors that this library raises for expected problems. Each message says what to do."""


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
    """The vectors, or the loaded encoder, do not belong to the encoder of the generation."""


class EncodingFailed(SimilarityError):
    """The encoder raised on a batch of texts; one of them may be the cause."""


class UnknownGeneration(SimilarityError):
    """The generation does not exist, or was retired."""


class NoLiveGeneration(SimilarityError):
    """The index holds no live generation yet."""


class GenerationConflict(SimilarityError):
    """A generation's state, its name or changes that it lacks do not allow this step."""


class LeaseHeld(SimilarityError):
    """Another process holds the lease; the message gives the holder and the time at which the lease ends."""


class LeaseLost(SimilarityError):
    """The lease has expired, was released, or was taken over by another process."""


class IndexUnavailable(SimilarityError):
    """The store of the index cannot be opened or does not answer.

    `reason`: the cause without names of files or hosts, for people who may not see these; often empty.
    """

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class AuditUnavailable(SimilarityError):
    """The audit record cannot be written, so nothing may be changed."""


class InvalidInput(SimilarityError):
    """An invalid file, column mapping or option. `about`: the member of a query that is wrong; often empty."""

    def __init__(self, message: str, *, about: str = "") -> None:
        super().__init__(message)
        self.about = about


class InvalidFilter(InvalidInput):
    """A filter cannot be used: for example, it names an unknown field, has no values or a limit that is no number."""

    def __init__(self, message: str) -> None:
        super().__init__(message, about="filters")


class UnknownField(InvalidFilter):
    """A filter names an unknown field, `field`."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field
