-- What schema version 6 adds to a file of version 5. Never edit it.
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
