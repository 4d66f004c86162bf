-- What schema version 10 adds to a file of version 9. Never edit it.
PRAGMA user_version = 10;
ALTER TABLE generations ADD COLUMN ranker TEXT;
UPDATE generations SET checksum = 2270921698 WHERE number = 1;
