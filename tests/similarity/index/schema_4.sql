-- What schema version 4 adds to a file of version 3. Never edit it.
PRAGMA user_version = 4;
CREATE TABLE former_names (id TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (id, hash)) WITHOUT ROWID;
CREATE TABLE erasures (id TEXT PRIMARY KEY, state TEXT NOT NULL, record TEXT NOT NULL);
ALTER TABLE registry ADD COLUMN name_key BLOB;
UPDATE registry SET name_key = randomblob(32);
