-- The queues, sessions and cells of unsnarl-cluster in PostgreSQL. Every operation is one call of a function, so one
-- transaction, which also works through a pooler; notifications need a connection of their own.
--
-- When a session ends is in a table that is not logged, so a renewal waits for no disk, whatever else this server or
-- machine writes. A crash empties that table, and so does the promotion of a standby. A session without a row there
-- is given its whole time to live again by the first who looks: longer than what its holder was confirmed before.
--
-- A ticket that is taken out while nobody waits is committed without waiting for the disk (or for a standby): a crash
-- may bring it back, never a grant away, since every grant waits. Its client repeats that with `keep_only`, the first
-- thing that it does over a new connection; without a client its session ends.
--
-- Invariants: a queue changes under its advisory lock only; tickets are granted in the order of `place`; a ticket is
-- taken from its holder only once its session was *deleted* as expired, which waits for a renewal that is being
-- committed, and makes every later one fail. Who needs both rows of a session locks that of `session` first.

BEGIN;
SELECT pg_advisory_xact_lock(7594212390401);

CREATE SCHEMA IF NOT EXISTS unsnarl_cluster_1;

CREATE TABLE IF NOT EXISTS unsnarl_cluster_1.session (
  id text PRIMARY KEY,
  client text NOT NULL,
  ttl_ms bigint NOT NULL
);

CREATE UNLOGGED TABLE IF NOT EXISTS unsnarl_cluster_1.renewal (
  id text PRIMARY KEY,
  expires timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS unsnarl_cluster_1.ticket (
  id text PRIMARY KEY,
  namespace text NOT NULL,
  queue text NOT NULL,
  session text NOT NULL,
  is_shared boolean NOT NULL,
  capacity integer NOT NULL,
  place bigint GENERATED ALWAYS AS IDENTITY,
  fence bigint,
  since timestamptz
);
CREATE INDEX IF NOT EXISTS ticket_queue ON unsnarl_cluster_1.ticket (namespace, queue, place);

CREATE TABLE IF NOT EXISTS unsnarl_cluster_1.cell (
  namespace text NOT NULL,
  name text NOT NULL,
  version bigint NOT NULL,
  content text NOT NULL,
  PRIMARY KEY (namespace, name)
);

-- For all queues: a fence needs to grow, not to be dense.
CREATE SEQUENCE IF NOT EXISTS unsnarl_cluster_1.fence;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.later(ttl_ms bigint) RETURNS timestamptz
LANGUAGE sql AS $$ SELECT clock_timestamp() + ttl_ms * interval '1 ms' $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.open(session_id text, ttl bigint, who text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO unsnarl_cluster_1.session VALUES (session_id, who, ttl) ON CONFLICT DO NOTHING;
  INSERT INTO unsnarl_cluster_1.renewal VALUES (session_id, unsnarl_cluster_1.later(ttl))
    ON CONFLICT (id) DO UPDATE SET expires = excluded.expires;
  -- What crashed clients have left, long after anybody can ask for it.
  INSERT INTO unsnarl_cluster_1.renewal SELECT id, unsnarl_cluster_1.later(ttl_ms) FROM unsnarl_cluster_1.session s
    WHERE NOT EXISTS (SELECT FROM unsnarl_cluster_1.renewal r WHERE r.id = s.id) ON CONFLICT DO NOTHING;
  DELETE FROM unsnarl_cluster_1.session s USING unsnarl_cluster_1.renewal r
    WHERE r.id = s.id AND r.expires < clock_timestamp() - interval '1 day';
  DELETE FROM unsnarl_cluster_1.renewal r WHERE expires < clock_timestamp() - interval '1 day'
    AND NOT EXISTS (SELECT FROM unsnarl_cluster_1.session s WHERE s.id = r.id);
  DELETE FROM unsnarl_cluster_1.ticket t
    WHERE NOT EXISTS (SELECT FROM unsnarl_cluster_1.session s WHERE s.id = t.session);
END $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.renew(session_id text, ttl bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('synchronous_standby_names') <> '' THEN
    -- A logged change, whose commit waits for the standbys as the setting says: a primary that is cut off from them
    -- must confirm nothing, since one of them may have taken its place.
    UPDATE unsnarl_cluster_1.session SET ttl_ms = ttl WHERE id = session_id;
  END IF;
  UPDATE unsnarl_cluster_1.renewal SET expires = unsnarl_cluster_1.later(ttl)
    WHERE id = session_id AND expires > clock_timestamp();
  IF FOUND THEN
    RETURN true;
  END IF;
  -- After a crash of the server there is no row. Waits for whoever ends the session now.
  PERFORM FROM unsnarl_cluster_1.session WHERE id = session_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO unsnarl_cluster_1.renewal AS r VALUES (session_id, unsnarl_cluster_1.later(ttl))
    ON CONFLICT (id) DO UPDATE SET expires = excluded.expires WHERE r.expires > clock_timestamp();
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.close(session_id text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM unsnarl_cluster_1.session WHERE id = session_id;
  DELETE FROM unsnarl_cluster_1.renewal WHERE id = session_id;
END $$;

-- Tells whether a session may still be used.
CREATE OR REPLACE FUNCTION unsnarl_cluster_1.is_alive(session_id text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (SELECT FROM unsnarl_cluster_1.session WHERE id = session_id)
    AND NOT EXISTS (SELECT FROM unsnarl_cluster_1.renewal WHERE id = session_id AND expires <= clock_timestamp());
END $$;

-- Tells whether a session has ended, and makes that final; gives it its whole time again after a crash.
CREATE OR REPLACE FUNCTION unsnarl_cluster_1.is_over(session_id text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM unsnarl_cluster_1.session s JOIN unsnarl_cluster_1.renewal r ON r.id = s.id
             WHERE s.id = session_id AND r.expires > clock_timestamp()) THEN
    RETURN false;
  END IF;
  PERFORM FROM unsnarl_cluster_1.session WHERE id = session_id FOR UPDATE;
  IF NOT FOUND THEN
    RETURN true;
  END IF;
  INSERT INTO unsnarl_cluster_1.renewal SELECT id, unsnarl_cluster_1.later(ttl_ms)
    FROM unsnarl_cluster_1.session WHERE id = session_id ON CONFLICT DO NOTHING;
  IF FOUND THEN
    RETURN false;
  END IF;
  -- Waits for a renewal that has not been committed, and then looks at the row as that has left it.
  DELETE FROM unsnarl_cluster_1.renewal WHERE id = session_id AND expires <= clock_timestamp();
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM unsnarl_cluster_1.session WHERE id = session_id;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.lock_queue(ns text, q text) RETURNS void
LANGUAGE sql AS $$ SELECT pg_advisory_xact_lock(hashtextextended(ns || ' ' || q, 7594212390402)) $$;

-- Grants what can be granted; all but `own` are told.
CREATE OR REPLACE FUNCTION unsnarl_cluster_1.settle(ns text, q text, own text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  t unsnarl_cluster_1.ticket;
  exclusive integer := 0;
  shared integer := 0;
  new_fence bigint;
BEGIN
  -- Holders come first: they were granted in the order of their places.
  FOR t IN SELECT * FROM unsnarl_cluster_1.ticket WHERE namespace = ns AND queue = q ORDER BY place LOOP
    IF t.fence IS NULL THEN
      IF left(q, 1) = 'r' THEN
        EXIT WHEN exclusive > 0 OR (NOT t.is_shared AND shared > 0);
      ELSE
        EXIT WHEN exclusive + shared >= t.capacity;
      END IF;
    END IF;
    IF unsnarl_cluster_1.is_over(t.session) THEN
      DELETE FROM unsnarl_cluster_1.ticket WHERE id = t.id;
      CONTINUE;
    END IF;
    IF t.fence IS NULL THEN
      new_fence := nextval('unsnarl_cluster_1.fence');
      UPDATE unsnarl_cluster_1.ticket SET fence = new_fence, since = clock_timestamp() WHERE id = t.id;
      IF t.id <> own THEN
        PERFORM pg_notify('unsnarl_' || split_part(t.id, '.', 1), 'granted ' || t.id || ' ' || new_fence);
      END IF;
    END IF;
    IF t.is_shared THEN shared := shared + 1; ELSE exclusive := exclusive + 1; END IF;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.enqueue(
  ns text, q text, ticket_id text, session_id text, shares boolean, limit_ integer, waits boolean,
  OUT word text, OUT first bigint, OUT second bigint
) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM unsnarl_cluster_1.lock_queue(ns, q);
  -- Where nobody is, one statement does all: the row is written once, with its grant.
  INSERT INTO unsnarl_cluster_1.ticket (id, namespace, queue, session, is_shared, capacity, fence, since)
    SELECT ticket_id, ns, q, session_id, shares, limit_, nextval('unsnarl_cluster_1.fence'), clock_timestamp()
    WHERE EXISTS (SELECT FROM unsnarl_cluster_1.session WHERE id = session_id)
      AND NOT EXISTS (SELECT FROM unsnarl_cluster_1.renewal WHERE id = session_id AND expires <= clock_timestamp())
      AND NOT EXISTS (SELECT FROM unsnarl_cluster_1.ticket WHERE namespace = ns AND queue = q)
    RETURNING 'granted', fence INTO word, first;
  IF FOUND THEN
    RETURN;
  END IF;
  IF NOT unsnarl_cluster_1.is_alive(session_id) THEN
    word := 'ended';
    RETURN;
  END IF;
  IF left(q, 1) = 's' THEN
    SELECT capacity INTO first FROM unsnarl_cluster_1.ticket t
      WHERE namespace = ns AND queue = q AND capacity <> limit_ AND unsnarl_cluster_1.is_alive(t.session) LIMIT 1;
    IF FOUND THEN
      word := 'limit';
      RETURN;
    END IF;
  END IF;
  INSERT INTO unsnarl_cluster_1.ticket (id, namespace, queue, session, is_shared, capacity)
    VALUES (ticket_id, ns, q, session_id, shares, limit_) ON CONFLICT DO NOTHING;
  PERFORM unsnarl_cluster_1.settle(ns, q, ticket_id);
  SELECT 'granted', fence INTO word, first FROM unsnarl_cluster_1.ticket WHERE id = ticket_id AND fence IS NOT NULL;
  IF FOUND THEN
    RETURN;
  END IF;
  IF NOT waits THEN
    DELETE FROM unsnarl_cluster_1.ticket WHERE id = ticket_id;
    word := 'busy';
    RETURN;
  END IF;
  word := 'queued';
  SELECT ceil(extract(epoch FROM min(r.expires) - clock_timestamp()) * 1000) INTO first
    FROM unsnarl_cluster_1.ticket t JOIN unsnarl_cluster_1.renewal r ON r.id = t.session
    WHERE t.namespace = ns AND t.queue = q AND t.fence IS NOT NULL;
  SELECT count(*) INTO second FROM unsnarl_cluster_1.ticket t
    WHERE namespace = ns AND queue = q AND fence IS NULL
      AND place < (SELECT place FROM unsnarl_cluster_1.ticket WHERE id = ticket_id);
END $$;

-- Takes a ticket out; tells whether others wait, who were then granted what can be granted.
CREATE OR REPLACE FUNCTION unsnarl_cluster_1.take_out(ns text, q text, ticket_id text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM unsnarl_cluster_1.lock_queue(ns, q);
  DELETE FROM unsnarl_cluster_1.ticket WHERE id = ticket_id;
  IF NOT EXISTS (SELECT FROM unsnarl_cluster_1.ticket WHERE namespace = ns AND queue = q AND fence IS NULL) THEN
    RETURN false;
  END IF;
  PERFORM unsnarl_cluster_1.settle(ns, q, '');
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.leave(ns text, q text, ticket_id text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT unsnarl_cluster_1.take_out(ns, q, ticket_id) THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
END $$;

-- Takes the tickets of these sessions out that their client no longer knows, but for those that it has named later.
CREATE OR REPLACE FUNCTION unsnarl_cluster_1.keep_only(ns text, sessions text[], known text[], next_number bigint)
RETURNS void LANGUAGE sql AS $$
  -- In one order, so that no two clients wait for each other's queues.
  SELECT unsnarl_cluster_1.take_out(namespace, queue, id) FROM (
    SELECT namespace, queue, id FROM unsnarl_cluster_1.ticket
      WHERE namespace = ns AND session = ANY (sessions) AND id <> ALL (known)
        AND split_part(id, '.', 3)::bigint < next_number
      ORDER BY queue
  ) AS forgotten
$$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.break_(ns text, q text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  broken bigint;
BEGIN
  PERFORM unsnarl_cluster_1.lock_queue(ns, q);
  WITH gone AS (
    DELETE FROM unsnarl_cluster_1.ticket WHERE namespace = ns AND queue = q AND fence IS NOT NULL RETURNING id
  ), told AS (
    SELECT pg_notify('unsnarl_' || split_part(id, '.', 1), 'broken ' || id || ' -') FROM gone
  ) SELECT count(*) INTO broken FROM told;
  PERFORM unsnarl_cluster_1.settle(ns, q, '');
  RETURN broken;
END $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.cell_channel(ns text, cell_name text) RETURNS text
LANGUAGE sql AS $$ SELECT 'unsnarl_cell_' || md5(ns || ' ' || cell_name) $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.swap(ns text, cell_name text, known bigint, new_content text)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF known = 0 THEN
    INSERT INTO unsnarl_cluster_1.cell VALUES (ns, cell_name, 1, new_content) ON CONFLICT DO NOTHING;
  ELSE
    UPDATE unsnarl_cluster_1.cell SET version = version + 1, content = new_content
      WHERE namespace = ns AND name = cell_name AND version = known;
  END IF;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM pg_notify(unsnarl_cluster_1.cell_channel(ns, cell_name), 'cell ' || cell_name || ' -');
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.watch(ns text, cell_name text) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('LISTEN %I', unsnarl_cluster_1.cell_channel(ns, cell_name)); END $$;

CREATE OR REPLACE FUNCTION unsnarl_cluster_1.unwatch(ns text, cell_name text) RETURNS void
LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UNLISTEN %I', unsnarl_cluster_1.cell_channel(ns, cell_name)); END $$;

COMMIT;
