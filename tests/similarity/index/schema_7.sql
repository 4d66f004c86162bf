-- What schema version 7 adds to a file of version 6. Never edit it.
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
