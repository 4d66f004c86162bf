-- What schema version 3 adds to a file of version 2. Never edit it.
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
