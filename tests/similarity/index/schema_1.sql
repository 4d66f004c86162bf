-- A file as schema version 1 wrote it: two companies and a tombstone in a live generation. Never edit it.
PRAGMA application_id = 1129531736;
PRAGMA user_version = 1;
CREATE TABLE generations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    encoder_id TEXT NOT NULL,
    bundle_id TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    slope REAL,
    intercept REAL,
    promoted_at INTEGER,
    promotion INTEGER NOT NULL DEFAULT 0,
    sequence INTEGER NOT NULL DEFAULT 0,
    purged INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX one_live ON generations (state) WHERE state = 'live';
CREATE TABLE retired (number INTEGER PRIMARY KEY);
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
);
CREATE INDEX documents_by_sequence ON documents (generation, sequence);
CREATE INDEX tombstones ON documents (generation, version) WHERE deleted;
CREATE TABLE companies (
    document INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    aliases TEXT NOT NULL,
    domain TEXT NOT NULL,
    country TEXT NOT NULL,
    industry TEXT NOT NULL,
    tags TEXT NOT NULL,
    attributes TEXT NOT NULL
);
CREATE TABLE vectors (document INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE lookups (
    generation INTEGER NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    document INTEGER NOT NULL,
    PRIMARY KEY (generation, field, value, document)
) WITHOUT ROWID
;
CREATE INDEX lookups_by_document ON lookups (document);
CREATE VIRTUAL TABLE words USING fts5 (
    name, aliases, domain, description,
    content = 'companies', content_rowid = 'document',
    tokenize = 'unicode61 remove_diacritics 2', prefix = '2'
);
CREATE TRIGGER companies_added AFTER INSERT ON companies BEGIN
    INSERT INTO words (rowid, name, aliases, domain, description)
    VALUES (new.document, new.name, new.aliases, new.domain, new.description);
END;
CREATE TRIGGER companies_removed AFTER DELETE ON companies BEGIN
    INSERT INTO words (words, rowid, name, aliases, domain, description)
    VALUES ('delete', old.document, old.name, old.aliases, old.domain, old.description);
END;
CREATE TRIGGER companies_reworded AFTER UPDATE ON companies
WHEN (old.name, old.aliases, old.domain, old.description)
  <> (new.name, new.aliases, new.domain, new.description)
BEGIN
    INSERT INTO words (words, rowid, name, aliases, domain, description)
    VALUES ('delete', old.document, old.name, old.aliases, old.domain, old.description);
    INSERT INTO words (rowid, name, aliases, domain, description)
    VALUES (new.document, new.name, new.aliases, new.domain, new.description);
END;
INSERT INTO generations VALUES (1, 'first', 'encoder-1', 'bundle-1', 8, 1740787200000000, 'live', NULL, NULL, 1795266657551655, 1, 1, 0);
INSERT INTO documents VALUES (1, 1, 'acme', 2, 1, 0, '3f10f84f5a31028ff1efc8bf41bbcf3f', 'en', 1740830400000250);
INSERT INTO documents VALUES (2, 1, 'bolt', 4, 1, 0, '7ac8c52d0f616ae40d2e56b0f5df14ca', 'en', 1740830400000250);
INSERT INTO documents VALUES (3, 1, 'gone', 7, 1, 1, '', '', 0);
INSERT INTO companies VALUES (1, 'Acme Größe', 'Makes things that only acme makes.', '["ACM"]', 'acme.com', 'DE', '', '["tools"]', '{"listed": true}');
INSERT INTO companies VALUES (2, 'Bolt', 'Makes things that only bolt makes.', '[]', '', '', '', '[]', '{}');
INSERT INTO vectors VALUES (1, X'3abb63be31c14bbf048b183e9a42e5bcca4cde3e713183be45303d3ec5b29bbd');
INSERT INTO vectors VALUES (2, X'1e1d073f92a1a83d99270c3e6642033fec981dbe4a3a5c3cb063d2bcfe9e23bf');
INSERT INTO lookups VALUES (1, 'attributes.listed', 'true', 1);
INSERT INTO lookups VALUES (1, 'country', 'de', 1);
INSERT INTO lookups VALUES (1, 'domain', 'acme.com', 1);
INSERT INTO lookups VALUES (1, 'name', 'acm', 1);
INSERT INTO lookups VALUES (1, 'name', 'acme grösse', 1);
INSERT INTO lookups VALUES (1, 'tags', 'tools', 1);
INSERT INTO lookups VALUES (1, 'name', 'bolt', 2);
