-- What schema version 9 adds to a file of version 8. Never edit it.
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
