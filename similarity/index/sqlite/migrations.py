"""The migrations of the SQLite index's file: SQL that upgrades a file from one schema version to the next.

`PRAGMA user_version` is the number of applied migrations. Releases only append to `MIGRATIONS`; a published migration
is never edited, so its SQL names the columns of that time.
"""

from similarity.index.sqlite.files import Migration
from similarity.index.sqlite.records import add_checksums

GENERATION_COLUMNS = (
    "number, sequence, purged, companies, promotion, name, encoder_id, bundle_id, dimension, created_at, state, "
    "slope, intercept, promoted_at"
)
"""The columns of `generations` that its `checksum` covers, in this order; since RANKERS also `ranker`.

As a part of a published migration, this text is never edited.
"""

FIRST_VERSION: Migration = (
    """
    CREATE TABLE generations (
        number INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused, unlike the name
        name TEXT NOT NULL UNIQUE,
        encoder_id TEXT NOT NULL,
        bundle_id TEXT NOT NULL,
        dimension INTEGER NOT NULL,
        created_at INTEGER NOT NULL,               -- UTC microseconds, as every time in this file
        state TEXT NOT NULL,
        slope REAL,
        intercept REAL,
        promoted_at INTEGER,
        promotion INTEGER NOT NULL DEFAULT 0,      -- counts promotes and rollbacks: the order of going live
        sequence INTEGER NOT NULL DEFAULT 0,       -- counts write transactions
        purged INTEGER NOT NULL DEFAULT 0          -- highest sequence of a document that was purged
    )
    """,
    "CREATE UNIQUE INDEX one_live ON generations (state) WHERE state = 'live'",
    "CREATE TABLE retired (number INTEGER PRIMARY KEY)",
    """
    CREATE TABLE documents (
        document INTEGER PRIMARY KEY,
        generation INTEGER NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        deleted INTEGER NOT NULL,
        text_hash TEXT NOT NULL,
        language TEXT NOT NULL,
        embedded_at INTEGER NOT NULL,
        UNIQUE (generation, id)
    )
    """,
    "CREATE INDEX documents_by_sequence ON documents (generation, sequence)",
    "CREATE INDEX tombstones ON documents (generation, version) WHERE deleted",
    """
    CREATE TABLE companies (
        document INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        description TEXT NOT NULL,
        aliases TEXT NOT NULL,                     -- JSON, as tags and attributes
        domain TEXT NOT NULL,
        country TEXT NOT NULL,
        industry TEXT NOT NULL,
        tags TEXT NOT NULL,
        attributes TEXT NOT NULL
    )
    """,
    "CREATE TABLE vectors (document INTEGER PRIMARY KEY, vector BLOB NOT NULL)",  # little-endian float32
    """
    CREATE TABLE lookups (
        generation INTEGER NOT NULL,
        field TEXT NOT NULL,
        value TEXT NOT NULL,
        document INTEGER NOT NULL,
        PRIMARY KEY (generation, field, value, document)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX lookups_by_document ON lookups (document)",
    """
    CREATE VIRTUAL TABLE words USING fts5 (
        name, aliases, domain, description,
        content = 'companies', content_rowid = 'document',
        tokenize = 'unicode61 remove_diacritics 2', prefix = '2'
    )
    """,
    """
    CREATE TRIGGER companies_added AFTER INSERT ON companies BEGIN
        INSERT INTO words (rowid, name, aliases, domain, description)
        VALUES (new.document, new.name, new.aliases, new.domain, new.description);
    END
    """,
    """
    CREATE TRIGGER companies_removed AFTER DELETE ON companies BEGIN
        INSERT INTO words (words, rowid, name, aliases, domain, description)
        VALUES ('delete', old.document, old.name, old.aliases, old.domain, old.description);
    END
    """,
    """
    CREATE TRIGGER companies_reworded AFTER UPDATE ON companies
    WHEN (old.name, old.aliases, old.domain, old.description)
      <> (new.name, new.aliases, new.domain, new.description)
    BEGIN
        INSERT INTO words (words, rowid, name, aliases, domain, description)
        VALUES ('delete', old.document, old.name, old.aliases, old.domain, old.description);
        INSERT INTO words (rowid, name, aliases, domain, description)
        VALUES (new.document, new.name, new.aliases, new.domain, new.description);
    END
    """,
)

SECOND_VERSION: Migration = (
    """
    CREATE TABLE registry (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        revision INTEGER NOT NULL,                 -- counts changes of generations
        fence INTEGER NOT NULL                     -- counts leases taken
    )
    """,
    "INSERT INTO registry VALUES (1, 0, 0)",
    """
    CREATE TRIGGER generations_added AFTER INSERT ON generations BEGIN
        UPDATE registry SET revision = revision + 1;
    END
    """,
    """
    CREATE TRIGGER generations_changed AFTER UPDATE OF state ON generations BEGIN
        UPDATE registry SET revision = revision + 1;
    END
    """,
    """
    CREATE TRIGGER generations_removed AFTER DELETE ON generations BEGIN
        UPDATE registry SET revision = revision + 1;
    END
    """,
    """
    CREATE TABLE leases (
        name TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        fence INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        acknowledged INTEGER NOT NULL
    )
    """,
)

# A process of an older release does not write the keys of numbers, so range filters would miss its companies without an
# error. The file refuses its writes.
LACKS_NUMBERS = """
    EXISTS (
        SELECT 1 FROM json_each(new.attributes) AS attribute
        WHERE attribute.type IN ('integer', 'real') AND NOT EXISTS (
            SELECT 1 FROM lookups
            WHERE lookups.document = new.document AND lookups.field = 'attributes.' || attribute.key || '.number'
        )
    )
"""
REFUSED = (
    "a process of an older release writes to this index, which was upgraded; stop it and start it with the new release"
)

THIRD_VERSION: Migration = (
    """
    INSERT INTO lookups (generation, field, value, document)
    SELECT generation, number.key, number.value, document
    FROM companies JOIN documents USING (document), json_each(number_lookups(attributes)) AS number
    """,
    f"""
    CREATE TRIGGER companies_added_with_numbers AFTER INSERT ON companies WHEN new.attributes <> '{{}}' BEGIN
        SELECT RAISE(ABORT, '{REFUSED}') WHERE {LACKS_NUMBERS};
    END
    """,
    f"""
    CREATE TRIGGER companies_changed_with_numbers AFTER UPDATE ON companies WHEN new.attributes <> '{{}}' BEGIN
        SELECT RAISE(ABORT, '{REFUSED}') WHERE {LACKS_NUMBERS};
    END
    """,
)

FORMER_NAMES: Migration = (
    "CREATE TABLE former_names (id TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (id, hash)) WITHOUT ROWID",
    "CREATE TABLE erasures (id TEXT PRIMARY KEY, state TEXT NOT NULL, record TEXT NOT NULL)",  # record: JSON
    "ALTER TABLE registry ADD COLUMN name_key BLOB",  # the secret of the hashes
    "UPDATE registry SET name_key = randomblob(32)",
)

UNSEALED = 0
"""Placeholder `checksum` in `generations`: this release writes it first, and the real checksum in the next statement.

Triggers abort every other change of `generations`, so a process of an older release cannot write.
"""
LIVE_DOCUMENTS = "SELECT count(*) FROM documents WHERE documents.generation = generations.number AND NOT deleted"
CHECKSUMS: Migration = (
    "ALTER TABLE documents ADD COLUMN profile_checksum INTEGER",  # NULL of a tombstone, as vector_checksum
    "ALTER TABLE documents ADD COLUMN vector_checksum INTEGER",
    "ALTER TABLE documents ADD COLUMN checksum INTEGER",
    """
    UPDATE documents SET
        profile_checksum = (
            SELECT checksum(name, description, aliases, domain, country, industry, tags, attributes)
            FROM companies WHERE companies.document = documents.document
        ),
        vector_checksum = (
            SELECT vector_checksum(documents.document, generation, id, vector)
            FROM vectors WHERE vectors.document = documents.document
        )
    """,
    """
    UPDATE documents SET checksum = checksum(
        document, generation, id, sequence, version, deleted, text_hash, language, embedded_at,
        profile_checksum, vector_checksum
    )
    """,
    "ALTER TABLE generations ADD COLUMN companies INTEGER NOT NULL DEFAULT 0",  # how many are not deleted
    "ALTER TABLE generations ADD COLUMN checksum INTEGER",
    f"UPDATE generations SET companies = ({LIVE_DOCUMENTS})",
    f"UPDATE generations SET checksum = checksum({GENERATION_COLUMNS})",
    f"""
    CREATE TRIGGER generations_added_with_checksum AFTER INSERT ON generations WHEN new.checksum IS NOT {UNSEALED} BEGIN
        SELECT RAISE(ABORT, '{REFUSED}');
    END
    """,
    f"""
    CREATE TRIGGER generations_changed_with_checksum
    AFTER UPDATE OF {GENERATION_COLUMNS} ON generations WHEN new.checksum IS NOT {UNSEALED} BEGIN
        SELECT RAISE(ABORT, '{REFUSED}');
    END
    """,
)

LEDGER_CHECKSUMS: Migration = (
    *add_checksums("registry", "name_key", refused=REFUSED),
    *add_checksums("former_names", "id, hash", refused=REFUSED),
    *add_checksums("erasures", "id, state, record", refused=REFUSED),
)

# `counted` is the sum of both counters. The trigger adds each change to it, so damage to a counter makes them differ.
COORDINATION_CHECKSUMS: Migration = (
    *add_checksums("leases", "name, holder, fence, expires_at, acknowledged", refused=REFUSED),
    "ALTER TABLE registry ADD COLUMN counted INTEGER",  # revision + fence
    "UPDATE registry SET counted = revision + fence",
    """
    CREATE TRIGGER registry_counted AFTER UPDATE OF revision, fence ON registry BEGIN
        UPDATE registry SET counted = counted + (new.revision - old.revision) + (new.fence - old.fence);
    END
    """,
)

ATTRIBUTES: Migration = (
    "CREATE TABLE attributes (name TEXT PRIMARY KEY, type TEXT NOT NULL, is_size INTEGER NOT NULL, checksum INTEGER)",
)


def _searched_texts(row: str = "") -> str:
    """Return the SQL of the searched columns of a table or, with `row` "new." or "old.", of a trigger's row."""
    columns = ("name", "aliases", "domain", "description")
    return ", ".join(f"stored_bigrams(CAST({row}{column} AS BLOB)) AS {column}" for column in columns)


ADD_WORDS = (
    f"INSERT INTO words (rowid, name, aliases, domain, description) SELECT new.document, {_searched_texts('new.')}"
)
REMOVE_WORDS = (
    "INSERT INTO words (words, rowid, name, aliases, domain, description) "
    f"SELECT 'delete', old.document, {_searched_texts('old.')}"
)
# FTS5 takes a Chinese or Japanese sentence for one word, so sentences are split into bigrams first (`index.cjk`).
CJK_WORDS: Migration = (
    "DROP TRIGGER companies_added",
    "DROP TRIGGER companies_removed",
    "DROP TRIGGER companies_reworded",
    "DROP TABLE words",
    f"CREATE VIEW searched_texts AS SELECT document, {_searched_texts()} FROM companies",
    """
    CREATE VIRTUAL TABLE words USING fts5 (
        name, aliases, domain, description,
        content = 'searched_texts', content_rowid = 'document',
        tokenize = 'unicode61 remove_diacritics 2', prefix = '2'
    )
    """,
    "INSERT INTO words (words) VALUES ('rebuild')",
    f"CREATE TRIGGER companies_added AFTER INSERT ON companies BEGIN {ADD_WORDS}; END",
    f"CREATE TRIGGER companies_removed AFTER DELETE ON companies BEGIN {REMOVE_WORDS}; END",
    f"""
    CREATE TRIGGER companies_reworded AFTER UPDATE ON companies
    WHEN (old.name, old.aliases, old.domain, old.description)
      <> (new.name, new.aliases, new.domain, new.description)
    BEGIN {REMOVE_WORDS}; {ADD_WORDS}; END
    """,
)

RANKERS: Migration = (
    "ALTER TABLE generations ADD COLUMN ranker TEXT",  # JSON; NULL of a generation from before
    f"UPDATE generations SET checksum = checksum({GENERATION_COLUMNS}, ranker)",
)

# A process from before RANKERS seals a new generation without its ranker, so its row would seem to be damaged.
RANKERS_OF_NEW: Migration = (
    f"""
    CREATE TRIGGER generations_added_with_ranker AFTER INSERT ON generations WHEN new.ranker IS NULL BEGIN
        SELECT RAISE(ABORT, '{REFUSED}');
    END
    """,
)

# A process from before RETIRED_BUNDLES does not record the bundle, so a scheduled re-embed could use that bundle again.
RETIRED_BUNDLES: Migration = (
    "CREATE TABLE retired_bundles (bundle_id TEXT PRIMARY KEY, checksum INTEGER) WITHOUT ROWID",
    f"""
    CREATE TRIGGER generations_removed_with_bundle BEFORE DELETE ON generations
    WHEN old.state = 'previous' AND old.bundle_id NOT IN (SELECT bundle_id FROM retired_bundles) BEGIN
        SELECT RAISE(ABORT, '{REFUSED}');
    END
    """,
)

MIGRATIONS: tuple[Migration, ...] = (
    FIRST_VERSION,
    SECOND_VERSION,
    THIRD_VERSION,
    FORMER_NAMES,
    CHECKSUMS,
    LEDGER_CHECKSUMS,
    COORDINATION_CHECKSUMS,
    ATTRIBUTES,
    CJK_WORDS,
    RANKERS,
    RANKERS_OF_NEW,
    RETIRED_BUNDLES,
)
