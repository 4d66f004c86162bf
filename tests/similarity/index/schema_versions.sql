-- An index file as each schema version left it: what version 1 wrote, then what each later one adds. Never edit a version.

-- Version 1: two companies and a tombstone in a live generation
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

-- Version 2
PRAGMA user_version = 2;
CREATE TABLE registry (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    revision INTEGER NOT NULL,
    fence INTEGER NOT NULL
);
INSERT INTO registry VALUES (1, 0, 0);
CREATE TRIGGER generations_added AFTER INSERT ON generations BEGIN
    UPDATE registry SET revision = revision + 1;
END;
CREATE TRIGGER generations_changed AFTER UPDATE OF state ON generations BEGIN
    UPDATE registry SET revision = revision + 1;
END;
CREATE TRIGGER generations_removed AFTER DELETE ON generations BEGIN
    UPDATE registry SET revision = revision + 1;
END;
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    fence INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    acknowledged INTEGER NOT NULL
);

-- Version 3
PRAGMA user_version = 3;
CREATE TRIGGER companies_added_with_numbers AFTER INSERT ON companies WHEN new.attributes <> '{}' BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release') WHERE
    EXISTS (
        SELECT 1 FROM json_each(new.attributes) AS attribute
        WHERE attribute.type IN ('integer', 'real') AND NOT EXISTS (
            SELECT 1 FROM lookups
            WHERE lookups.document = new.document AND lookups.field = 'attributes.' || attribute.key || '.number'
        )
    )
;
END;
CREATE TRIGGER companies_changed_with_numbers AFTER UPDATE ON companies WHEN new.attributes <> '{}' BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release') WHERE
    EXISTS (
        SELECT 1 FROM json_each(new.attributes) AS attribute
        WHERE attribute.type IN ('integer', 'real') AND NOT EXISTS (
            SELECT 1 FROM lookups
            WHERE lookups.document = new.document AND lookups.field = 'attributes.' || attribute.key || '.number'
        )
    )
;
END;

-- Version 4
PRAGMA user_version = 4;
CREATE TABLE former_names (id TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (id, hash)) WITHOUT ROWID;
CREATE TABLE erasures (id TEXT PRIMARY KEY, state TEXT NOT NULL, record TEXT NOT NULL);
ALTER TABLE registry ADD COLUMN name_key BLOB;
UPDATE registry SET name_key = randomblob(32);

-- Version 5
PRAGMA user_version = 5;
ALTER TABLE documents ADD COLUMN profile_checksum INTEGER;
ALTER TABLE documents ADD COLUMN vector_checksum INTEGER;
ALTER TABLE documents ADD COLUMN checksum INTEGER;
ALTER TABLE generations ADD COLUMN companies INTEGER NOT NULL DEFAULT 0;
ALTER TABLE generations ADD COLUMN checksum INTEGER;
UPDATE documents SET profile_checksum = 1581416335, vector_checksum = 4170280610, checksum = 3677455070 WHERE document = 1;
UPDATE documents SET profile_checksum = 3911585075, vector_checksum = 961476620, checksum = 812935805 WHERE document = 2;
UPDATE documents SET profile_checksum = NULL, vector_checksum = NULL, checksum = 3009243586 WHERE document = 3;
UPDATE generations SET companies = 2, checksum = 101922797 WHERE number = 1;
CREATE TRIGGER generations_added_with_checksum AFTER INSERT ON generations WHEN new.checksum IS NOT 0 BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
CREATE TRIGGER generations_changed_with_checksum
AFTER UPDATE OF number, sequence, purged, companies, promotion, name, encoder_id, bundle_id, dimension, created_at, state, slope, intercept, promoted_at ON generations WHEN new.checksum IS NOT 0 BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;

-- Version 6
PRAGMA user_version = 6;
ALTER TABLE registry ADD COLUMN checksum INTEGER;
UPDATE registry SET name_key = X'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', checksum = 1580079329;
CREATE TRIGGER registry_added_with_checksum BEFORE INSERT ON registry WHEN new.checksum IS NULL BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
CREATE TRIGGER registry_changed_with_checksum BEFORE UPDATE OF name_key ON registry WHEN new.checksum IS old.checksum AND (new.name_key) IS NOT (old.name_key) BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
ALTER TABLE former_names ADD COLUMN checksum INTEGER;
CREATE TRIGGER former_names_added_with_checksum BEFORE INSERT ON former_names WHEN new.checksum IS NULL BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
CREATE TRIGGER former_names_changed_with_checksum BEFORE UPDATE OF id, hash ON former_names WHEN new.checksum IS old.checksum AND (new.id, new.hash) IS NOT (old.id, old.hash) BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
ALTER TABLE erasures ADD COLUMN checksum INTEGER;
CREATE TRIGGER erasures_added_with_checksum BEFORE INSERT ON erasures WHEN new.checksum IS NULL BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
CREATE TRIGGER erasures_changed_with_checksum BEFORE UPDATE OF id, state, record ON erasures WHEN new.checksum IS old.checksum AND (new.id, new.state, new.record) IS NOT (old.id, old.state, old.record) BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;

-- Version 7
PRAGMA user_version = 7;
ALTER TABLE leases ADD COLUMN checksum INTEGER;
CREATE TRIGGER leases_added_with_checksum BEFORE INSERT ON leases WHEN new.checksum IS NULL BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
CREATE TRIGGER leases_changed_with_checksum BEFORE UPDATE OF name, holder, fence, expires_at, acknowledged ON leases WHEN new.checksum IS old.checksum AND (new.name, new.holder, new.fence, new.expires_at, new.acknowledged) IS NOT (old.name, old.holder, old.fence, old.expires_at, old.acknowledged) BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
ALTER TABLE registry ADD COLUMN counted INTEGER;
UPDATE registry SET counted = revision + fence;
CREATE TRIGGER registry_counted AFTER UPDATE OF revision, fence ON registry BEGIN
    UPDATE registry SET counted = counted + (new.revision - old.revision) + (new.fence - old.fence);
END;

-- Version 8
PRAGMA user_version = 8;
CREATE TABLE attributes (name TEXT PRIMARY KEY, type TEXT NOT NULL, is_size INTEGER NOT NULL, checksum INTEGER);

-- Version 9
PRAGMA user_version = 9;
DROP TRIGGER companies_added;
DROP TRIGGER companies_removed;
DROP TRIGGER companies_reworded;
DROP TABLE words;
CREATE VIEW searched_texts AS SELECT document, stored_bigrams(CAST(name AS BLOB)) AS name, stored_bigrams(CAST(aliases AS BLOB)) AS aliases, stored_bigrams(CAST(domain AS BLOB)) AS domain, stored_bigrams(CAST(description AS BLOB)) AS description FROM companies;
CREATE VIRTUAL TABLE words USING fts5 (
        name, aliases, domain, description,
        content = 'searched_texts', content_rowid = 'document',
        tokenize = 'unicode61 remove_diacritics 2', prefix = '2'
    );
INSERT INTO words (words) VALUES ('rebuild');
CREATE TRIGGER companies_added AFTER INSERT ON companies BEGIN INSERT INTO words (rowid, name, aliases, domain, description) SELECT new.document, stored_bigrams(CAST(new.name AS BLOB)) AS name, stored_bigrams(CAST(new.aliases AS BLOB)) AS aliases, stored_bigrams(CAST(new.domain AS BLOB)) AS domain, stored_bigrams(CAST(new.description AS BLOB)) AS description; END;
CREATE TRIGGER companies_removed AFTER DELETE ON companies BEGIN INSERT INTO words (words, rowid, name, aliases, domain, description) SELECT 'delete', old.document, stored_bigrams(CAST(old.name AS BLOB)) AS name, stored_bigrams(CAST(old.aliases AS BLOB)) AS aliases, stored_bigrams(CAST(old.domain AS BLOB)) AS domain, stored_bigrams(CAST(old.description AS BLOB)) AS description; END;
CREATE TRIGGER companies_reworded AFTER UPDATE ON companies
    WHEN (old.name, old.aliases, old.domain, old.description)
      <> (new.name, new.aliases, new.domain, new.description)
    BEGIN INSERT INTO words (words, rowid, name, aliases, domain, description) SELECT 'delete', old.document, stored_bigrams(CAST(old.name AS BLOB)) AS name, stored_bigrams(CAST(old.aliases AS BLOB)) AS aliases, stored_bigrams(CAST(old.domain AS BLOB)) AS domain, stored_bigrams(CAST(old.description AS BLOB)) AS description; INSERT INTO words (rowid, name, aliases, domain, description) SELECT new.document, stored_bigrams(CAST(new.name AS BLOB)) AS name, stored_bigrams(CAST(new.aliases AS BLOB)) AS aliases, stored_bigrams(CAST(new.domain AS BLOB)) AS domain, stored_bigrams(CAST(new.description AS BLOB)) AS description; END;

-- Version 10
PRAGMA user_version = 10;
ALTER TABLE generations ADD COLUMN ranker TEXT;
UPDATE generations SET checksum = 2270921698 WHERE number = 1;

-- Version 11
PRAGMA user_version = 11;
CREATE TRIGGER generations_added_with_ranker AFTER INSERT ON generations WHEN new.ranker IS NULL BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;

-- Version 12
PRAGMA user_version = 12;
CREATE TABLE retired_bundles (bundle_id TEXT PRIMARY KEY, checksum INTEGER) WITHOUT ROWID;
CREATE TRIGGER generations_removed_with_bundle BEFORE DELETE ON generations
WHEN old.state = 'previous' AND old.bundle_id NOT IN (SELECT bundle_id FROM retired_bundles) BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
