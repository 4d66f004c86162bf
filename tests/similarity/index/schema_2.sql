-- What schema version 2 adds to a file of version 1. Never edit it.
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
