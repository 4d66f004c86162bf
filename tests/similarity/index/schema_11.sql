-- What schema version 11 adds to a file of version 10. Never edit it.
PRAGMA user_version = 11;
CREATE TRIGGER generations_added_with_ranker AFTER INSERT ON generations WHEN new.ranker IS NULL BEGIN
    SELECT RAISE(ABORT, 'a process of an older release writes to this index, which was upgraded; stop it and start it with the new release');
END;
