"""Every kind of error that the service answers, and what a client can do about it.

`problem_documents` makes RFC 9457 documents of them; the manual and docs/problems.md list them as ordered here.
"""

from dataclasses import dataclass

from .. import PROGRAM


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem. `slug`: its anchor in the manual. `meaning`: what to do, as the manual says it.

    `retry_after`: seconds after which the same request may succeed; None if only another request can.
    """

    status: int
    slug: str
    title: str
    meaning: str
    retry_after: int | None = None


OTHER_REFUSAL = Kind(
    400, "refused", "Request refused", "The server cannot process this request as it is; `detail` says why."
)
UNKNOWN_ADDRESS = Kind(
    404, "unknown-address", "No such address", "Nothing answers at this path. The manual lists all addresses."
)
UNKNOWN_COMPANY = Kind(
    404,
    "unknown-company",
    "Unknown company",
    "No company has this id, domain, name or alias. `suggestions` holds companies of similar names, or of names that "
    "begin alike; `GET /companies?q=` finds more.",
)
METHOD_NOT_ALLOWED = Kind(
    405,
    "method-not-allowed",
    "Method not allowed",
    "The address exists but needs another method; the `Allow` header lists them.",
)
CONTESTED_NAME = Kind(
    409, "contested-name", "Several companies go by that name", "Ask again with the id of one of `candidates`."
)
INVALID_REQUEST = Kind(
    422,
    "invalid-request",
    "Invalid request",
    "A parameter is missing, unknown or out of range; `errors` names each with the reason.",
)
INTERNAL_ERROR = Kind(
    500, "internal-error", "Internal error", "A fault of the service, not of the request. Its log holds the trace."
)
INDEX_UNAVAILABLE = Kind(
    503,
    "index-unavailable",
    "The index does not answer",
    "The store behind the service cannot be read at the moment. The service's log says why.",
    retry_after=5,
)
NO_LIVE_GENERATION = Kind(
    503,
    "no-live-generation",
    "The index holds no companies yet",
    "Fill it with `similarity ingest FILE`; the service need not be restarted.",
    retry_after=30,
)
GENERATION_GONE = Kind(
    503,
    "generation-gone",
    "The index is being replaced",
    "The live generation was retired twice while one query was answered. Ask again.",
    retry_after=1,
)
ENCODER_NOT_LOADED = Kind(
    503,
    "encoder-not-loaded",
    "Free text needs an encoder that is not loaded",
    "Queries by company work without it. Start the service with the bundle of the live generation (`--bundle FOLDER` "
    "or SIMILARITY_BUNDLE), or ingest again with the loaded one.",
    retry_after=300,
)
KEY_NEEDED = Kind(
    401,
    "key-needed",
    "A valid key is needed",
    "Send your key as `Authorization: Bearer KEY`. It is missing, unknown, revoked or expired; the operator makes "
    f"keys with `{PROGRAM}.keys add`.",
)
SCOPE_MISSING = Kind(
    403, "scope-missing", "The key lacks a scope", "The key is valid but lacks the scope that `detail` names."
)
RATE_LIMITED = Kind(
    429,
    "rate-limited",
    "Too many requests",
    "Wait for the seconds in `Retry-After`. Where requests are counted, the `RateLimit` header of each answer says how "
    "many are left; without keys on loopback they are not.",
)
OVERLOADED = Kind(
    503,
    "overloaded",
    "Too busy at the moment",
    "The service already works on as many requests as it can. Nothing was done; ask again later.",
    retry_after=1,
)
TOOK_TOO_LONG = Kind(
    503,
    "took-too-long",
    "Not answered in time",
    "The service gave up waiting for its own work. A write may or may not be stored: it is safe to send it again.",
    retry_after=5,
)
SLOW_BODY = Kind(
    408, "slow-body", "The request did not arrive in time", "The body must arrive within the service's time limit."
)
BODY_TOO_LARGE = Kind(
    413, "body-too-large", "The request is too large", "`detail` names the limit. Send a large upload in parts."
)
HEAD_TOO_LARGE = Kind(
    431,
    "head-too-large",
    "Path and headers are too large",
    "`detail` names the limit. Send long queries in a body: `POST /similar`.",
)
COMPRESSED_BODY = Kind(
    415,
    "compressed-body",
    "Compressed bodies are not accepted",
    "Send the body uncompressed, without `Content-Encoding`.",
)
UNKNOWN_HOST = Kind(
    421,
    "unknown-host",
    "Not a host name of the service",
    "The service does not answer to the name in the `Host` header. The operator can add names with "
    "SIMILARITY_SERVICE_HOSTS.",
)
FOREIGN_PAGE = Kind(
    403,
    "foreign-page",
    "Sent from another site's page",
    "A browser sent this for a page of another origin, which may not change anything here. The operator can name "
    "trusted origins with SIMILARITY_SERVICE_ORIGINS.",
)
STOPPING = Kind(
    503,
    "stopping",
    "The service is stopping",
    "It finishes the requests that it has received; send new ones elsewhere.",
    retry_after=5,
)
WRONG_MEDIA_TYPE = Kind(
    415,
    "wrong-media-type",
    "Unsupported media type",
    "`detail` lists the media types that this address accepts; name one in `Content-Type`.",
)
WRITES_OFF = Kind(
    403,
    "writes-off",
    "This service is read-only",
    "The operator can turn writing on: SIMILARITY_SERVICE_WRITES=direct (or kafka), and a model bundle.",
)
WRITE_REJECTED = Kind(
    422,
    "write-rejected",
    "The company cannot be stored as it is",
    "`detail` says why: for example, the same event time is stored with other content. Send it with a newer one.",
)
WRITE_CONFLICT = Kind(
    409,
    "write-conflict",
    "Other writes came first",
    "A write without event time replaces what is stored, but at every attempt another write of this company had been "
    "stored first. Send it again, or give it an `event_time`.",
)
WRITE_FAILED = Kind(
    503,
    "write-failed",
    "The write was not accepted",
    "The store or Kafka did not accept it in time, or the audit record cannot be written. The write may or may not be "
    "stored: send it again, which is harmless.",
    retry_after=5,
)
WRITE_ENCODER_MISSING = Kind(
    503,
    "write-encoder-missing",
    "An encoder that the write needs is missing",
    "Every generation must get every change, each with vectors of its own encoder. Put the "
    "missing bundle into the index's bundle folder (SIMILARITY_BUNDLES), or retire its generation. A write in progress "
    "when the generation was added may be stored: send it again, which is harmless.",
    retry_after=60,
)
UNKNOWN_ERASURE = Kind(
    404,
    "unknown-erasure",
    "No erasure of this company",
    "Nobody has asked to erase it: `POST` to the same address does. Ids are case-sensitive.",
)
EVENT_CONFLICT = Kind(
    409,
    "event-conflict",
    "The event exists with other content",
    "Feedback is append-only. The same event may be sent again; a new verdict needs a new `id`, or none.",
)
ERASED_MEANWHILE = Kind(
    503,
    "erased-meanwhile",
    "A company was erased meanwhile",
    "Erasures searched feedback and lists at each of four tries to save this, so nothing was saved. Send it again.",
    retry_after=1,
)
UNKNOWN_LIST = Kind(404, "unknown-list", "Unknown list", "No list has this name; `GET /lists` returns all lists.")
LIST_EXISTS = Kind(
    412,
    "list-exists",
    "The list exists",
    "`If-None-Match: *` saves a list only if there is none of this name. Choose another name, or leave the header out.",
)
UNUSABLE_LIST = Kind(
    409,
    "unusable-list",
    "This list can no longer be answered",
    "Another release saved its query, and a part of it is unknown to this one. Save the list again.",
)
WRONG_KIND_OF_LIST = Kind(
    409,
    "wrong-kind-of-list",
    "The list is of the other kind",
    "A saved list holds a query or companies: `/hits` and `/looked` need a query; `/companies`, `/compare` and "
    "`exclude_lists` need companies.",
)
TOO_MANY_LISTS = Kind(
    409,
    "too-many-lists",
    "There are too many lists",
    "Delete a list that nobody needs, or save under the name of an existing one.",
)
CURSOR_EXPIRED = Kind(
    410,
    "cursor-expired",
    "The ranking of this page is gone",
    "The generation that it came from has been retired. Ask again without `cursor`.",
)
WRONG_CURSOR = Kind(
    422,
    "wrong-cursor",
    "Not a cursor of this query",
    "Send `next_cursor` unchanged, with the query that returned it. Cursors do not outlive the service's process, "
    "unless the operator has set SIMILARITY_SERVICE_CURSOR_SECRET.",
)
NO_CALIBRATION = Kind(
    422,
    "no-calibration",
    "There are no probabilities",
    "The live generation has no calibration, so `min_probability` cannot be applied. Ask without it.",
)

TOO_FEW_WORDS = Kind(
    422,
    "too-few-words",
    "Too few words to rank by",
    "The company asked about has fewer than three words that say something, or a text has none. Write a longer "
    "description, or ask with other words.",
)

KINDS = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
