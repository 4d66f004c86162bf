-- What schema version 5 adds to a file of version 4. Never edit it.
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
