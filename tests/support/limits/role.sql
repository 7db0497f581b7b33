-- What a role may not do that YugabyteDB cannot do. Run in each database by a superuser; `limited` is the role.

-- Functions that raise an error there, or whose answers are those of one node.
DO $$
DECLARE
    found regprocedure;
BEGIN
    FOR found IN
        SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ concat(
            '^(pg_notify|pg_(try_)?advisory_.*|txid_.*|pg_current_xact_id.*|pg_current_snapshot|pg_snapshot_.*',
            '|pg_visible_in_snapshot|pg_xact_.*|pg_export_snapshot|pg_last_committed_xact)$'
        )
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', found);
    END LOOP;
END $$;

-- A table's rights are those to its columns, for its owner too: ctid and xmin are none of them. Deleting rows is a
-- right to the table; so LOCK is refused by the proxy.
CREATE FUNCTION public.limit_rights() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
    made record;
    names text;
BEGIN
    IF current_user <> 'limited' THEN
        RETURN;
    END IF;
    FOR made IN SELECT objid, objid::regclass AS name FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' LOOP
        SELECT string_agg(quote_ident(attname), ', ') INTO names
        FROM pg_attribute WHERE attrelid = made.objid AND attnum > 0 AND NOT attisdropped;
        EXECUTE format('REVOKE ALL ON TABLE %s FROM limited', made.name);
        EXECUTE format('GRANT SELECT (%1$s), INSERT (%1$s), UPDATE (%1$s), DELETE ON TABLE %2$s TO limited', names, made.name);
    END LOOP;
END $$;
CREATE EVENT TRIGGER limit_rights ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'ALTER TABLE')
    EXECUTE FUNCTION public.limit_rights();
