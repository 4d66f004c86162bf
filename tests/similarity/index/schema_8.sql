-- What schema version 8 adds to a file of version 7. Never edit it.
PRAGMA user_version = 8;
CREATE TABLE attributes (name TEXT PRIMARY KEY, type TEXT NOT NULL, is_size INTEGER NOT NULL, checksum INTEGER);
