"""Every kind of error the service answers, with what to do about it.

`problem_documents` makes RFC 9457 documents of them.
"""

from dataclasses import dataclass

from .. import PROGRAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of problem; `slug` names its place in the manual, `meaning` says what to do."""

    slug: str
    status: int
    title: str
    meaning: str
    retry_after: int | None = None


UNKNOWN_ADDRESS = Kind(
    slug="unknown-address",
    status=404,
    title="No such address",
    meaning="Nothing answers at this path. This page lists what does.",
)
UNKNOWN_COMPANY = Kind(
    slug="unknown-company",
    status=404,
    title="Unknown company",
    meaning="No company has this id, domain, name or alias. `suggestions` holds companies that look alike; "
    "`GET /companies?q=` finds more.",
)
METHOD_NOT_ALLOWED = Kind(
    slug="method-not-allowed",
    status=405,
    title="Method not allowed",
    meaning="The address exists but takes another method; the `Allow` header says which.",
)
CONTESTED_NAME = Kind(
    slug="contested-name",
    status=409,
    title="Several companies go by that name",
    meaning="Ask again with the id of one of `candidates`.",
)
INVALID_REQUEST = Kind(
    slug="invalid-request",
    status=422,
    title="Invalid request",
    meaning="A parameter is missing, unknown or out of range; `errors` names each with the reason.",
)
OTHER_REFUSAL = Kind(
    slug="refused",
    status=400,
    title="Request refused",
    meaning="The server cannot take this request as it is; `detail` says why.",
)
INTERNAL_ERROR = Kind(
    slug="internal-error",
    status=500,
    title="Internal error",
    meaning="A fault of the service, not of the request. Its log holds the trace.",
)
INDEX_UNAVAILABLE = Kind(
    slug="index-unavailable",
    status=503,
    title="The index does not answer",
    meaning="The store behind the service cannot be read just now. The service's log says why.",
    retry_after=5,
)
NO_LIVE_GENERATION = Kind(
    slug="no-live-generation",
    status=503,
    title="The index holds no companies yet",
    meaning="Fill it with `similarity ingest FILE`; the service need not be restarted.",
    retry_after=30,
)
GENERATION_GONE = Kind(
    slug="generation-gone",
    status=503,
    title="The index is being replaced",
    meaning="The live generation was retired twice while one question was answered. Ask again.",
    retry_after=1,
)
ENCODER_NOT_LOADED = Kind(
    slug="encoder-not-loaded",
    status=503,
    title="Free text needs an encoder that is not loaded",
    meaning="Questions by company work without it. Start the service with the bundle of the live generation "
    "(`--bundle FOLDER` or SIMILARITY_BUNDLE), or ingest again with the loaded one.",
    retry_after=300,
)
KEY_NEEDED = Kind(
    slug="key-needed",
    status=401,
    title="A valid key is needed",
    meaning="Send your key as `Authorization: Bearer KEY`. It may be missing, unknown, revoked or expired; whoever "
    f"runs the service makes keys with `{PROGRAM}.keys add`.",
)
SCOPE_MISSING = Kind(
    slug="scope-missing",
    status=403,
    title="The key is not allowed this",
    meaning="The key is valid but lacks the scope that `detail` names.",
)
RATE_LIMITED = Kind(
    slug="rate-limited",
    status=429,
    title="Too many requests",
    meaning="Wait for the seconds in `Retry-After`. The `RateLimit` header of every answer says how many are left.",
)
OVERLOADED = Kind(
    slug="overloaded",
    status=503,
    title="Too busy just now",
    meaning="As many requests as the service can work on are under way. Nothing was done; ask again later.",
    retry_after=1,
)
TOOK_TOO_LONG = Kind(
    slug="took-too-long",
    status=503,
    title="Not answered in time",
    meaning="The service gave up waiting for its own work. A write may have been done or not: send it again, "
    "repeating it is safe.",
    retry_after=5,
)
SLOW_BODY = Kind(
    slug="slow-body",
    status=408,
    title="The request did not arrive in time",
    meaning="The body must arrive within the service's time limit.",
)
BODY_TOO_LARGE = Kind(
    slug="body-too-large",
    status=413,
    title="The request is too large",
    meaning="`detail` names the limit. Send a large upload in parts.",
)
HEAD_TOO_LARGE = Kind(
    slug="head-too-large",
    status=431,
    title="Path and headers are too large",
    meaning="`detail` names the limit. Send long questions in a body: `POST /similar`.",
)
COMPRESSED_BODY = Kind(
    slug="compressed-body",
    status=415,
    title="Compressed bodies are not taken",
    meaning="Send the body as it is, without `Content-Encoding`.",
)
NESTED_TOO_DEEPLY = Kind(
    slug="nested-too-deeply",
    status=400,
    title="The JSON is nested too deeply",
    meaning="No request of this service needs such depth; `detail` names the limit.",
)
UNKNOWN_HOST = Kind(
    slug="unknown-host",
    status=421,
    title="Not the service's name",
    meaning="The `Host` header is not a name this service answers to. Whoever runs it can add names with "
    "SIMILARITY_SERVICE_HOSTS.",
)
FOREIGN_PAGE = Kind(
    slug="foreign-page",
    status=403,
    title="Asked from another site's page",
    meaning="A browser sent this for a page of another origin, which may not change anything here. Whoever runs the "
    "service can name trusted origins with SIMILARITY_SERVICE_ORIGINS.",
)
STOPPING = Kind(
    slug="stopping",
    status=503,
    title="The service is stopping",
    meaning="It answers what is under way and still arrives, but new requests belong elsewhere.",
    retry_after=5,
)
WRONG_MEDIA_TYPE = Kind(
    slug="wrong-media-type",
    status=415,
    title="Not a form this address takes",
    meaning="`detail` names the media types it takes; say one in `Content-Type`.",
)
WRITES_OFF = Kind(
    slug="writes-off",
    status=403,
    title="This service only reads",
    meaning="Whoever runs it can turn writing on: SIMILARITY_SERVICE_WRITES=direct (or kafka), and a model bundle.",
)
WRITE_REJECTED = Kind(
    slug="write-rejected",
    status=422,
    title="The company cannot be stored as it is",
    meaning="`detail` says why: the same event time is stored with other content, say. Send it with a newer one.",
)
WRITE_CONFLICT = Kind(
    slug="write-conflict",
    status=409,
    title="Other writes came first",
    meaning="The write has no event time, so it follows what is stored; but at every attempt another write of this "
    "company had been stored meanwhile. Send it again, or give it an `event_time`.",
)
WRITE_FAILED = Kind(
    slug="write-failed",
    status=503,
    title="The write was not taken",
    meaning="The store or Kafka did not take it in time, or the audit record cannot be written. The write may be "
    "stored or not: send it again, which is harmless.",
    retry_after=5,
)
WRITE_ENCODER_MISSING = Kind(
    slug="write-encoder-missing",
    status=503,
    title="An encoder that the write needs is not at hand",
    meaning="Every generation must get every change, each with vectors of its own encoder. Nothing was written. "
    "Put the missing bundle into the index's bundle folder (SIMILARITY_BUNDLES), or retire its generation.",
    retry_after=60,
)
UNKNOWN_ERASURE = Kind(
    slug="unknown-erasure",
    status=404,
    title="No erasure of this company",
    meaning="Nobody has asked to erase it: `POST` to the same address does. Ids are case-sensitive.",
)
EVENT_CONFLICT = Kind(
    slug="event-conflict",
    status=409,
    title="This event already says something else",
    meaning="Feedback is only ever added. The same event may be sent again; a new verdict needs a new `id`, or none.",
)
UNKNOWN_LIST = Kind(
    slug="unknown-list",
    status=404,
    title="Unknown list",
    meaning="No list has this name; `GET /lists` says which there are.",
)
UNUSABLE_LIST = Kind(
    slug="unusable-list",
    status=409,
    title="This list can no longer be answered",
    meaning="Its question was saved by another release and has a part that this one does not know. Save it anew.",
)
TOO_MANY_LISTS = Kind(
    slug="too-many-lists",
    status=409,
    title="There are too many lists",
    meaning="Delete a list that nobody needs, or save under the name of one that is there.",
)
CURSOR_EXPIRED = Kind(
    slug="cursor-expired",
    status=410,
    title="The ranking that this page belongs to is gone",
    meaning="The generation it came from was retired meanwhile. Ask again without `cursor`.",
)
WRONG_CURSOR = Kind(
    slug="wrong-cursor",
    status=422,
    title="Not a cursor of this question",
    meaning="Send `next_cursor` as it came, with the question it came with. Cursors do not outlive the service's "
    "process, unless whoever runs it gave it a key to sign them with.",
)
NO_CALIBRATION = Kind(
    slug="no-calibration",
    status=422,
    title="There are no probabilities here",
    meaning="The live generation has no calibration, so `min_probability` cannot be judged. Ask without it.",
)
KINDS = (
    OTHER_REFUSAL,
    UNKNOWN_ADDRESS,
    UNKNOWN_COMPANY,
    METHOD_NOT_ALLOWED,
    CONTESTED_NAME,
    INVALID_REQUEST,
    INTERNAL_ERROR,
    INDEX_UNAVAILABLE,
    NO_LIVE_GENERATION,
    GENERATION_GONE,
    ENCODER_NOT_LOADED,
    KEY_NEEDED,
    SCOPE_MISSING,
    RATE_LIMITED,
    OVERLOADED,
    TOOK_TOO_LONG,
    SLOW_BODY,
    BODY_TOO_LARGE,
    HEAD_TOO_LARGE,
    COMPRESSED_BODY,
    NESTED_TOO_DEEPLY,
    UNKNOWN_HOST,
    FOREIGN_PAGE,
    STOPPING,
    WRONG_MEDIA_TYPE,
    WRITES_OFF,
    WRITE_REJECTED,
    WRITE_CONFLICT,
    WRITE_FAILED,
    WRITE_ENCODER_MISSING,
    UNKNOWN_ERASURE,
    EVENT_CONFLICT,
    UNKNOWN_LIST,
    UNUSABLE_LIST,
    TOO_MANY_LISTS,
    CURSOR_EXPIRED,
    WRONG_CURSOR,
    NO_CALIBRATION,
)
