-- What `refused_dump.sql` is of: a database with much that ours do not have.
CREATE SCHEMA other;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS pgcrypto;
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TYPE pair AS (a integer, b integer);
CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT n * 2; $$;
CREATE FUNCTION thrice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE BEGIN ATOMIC SELECT CASE WHEN n > 0 THEN 3 * n ELSE 0 END; SELECT 3 * n; END;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  RAISE NOTICE 'a; b $$';
  RETURN NEW;
END;
$body$;
CREATE TABLE arrays (id integer PRIMARY KEY, tags text[] DEFAULT '{}', span interval, spot inet, m mood, p positive);
CREATE TABLE other.elsewhere (id integer);
CREATE TABLE parent (id integer, at date) PARTITION BY RANGE (at);
CREATE TABLE part PARTITION OF parent FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE plain (id serial PRIMARY KEY, n integer, price numeric, other_id serial, name text COLLATE "POSIX", cas text);
CREATE TABLE child (extra text) INHERITS (plain);
ALTER TABLE plain ADD CONSTRAINT later CHECK (n > 0) NOT VALID;
ALTER TABLE plain ADD CONSTRAINT no_overlap EXCLUDE USING btree (n WITH =);
CREATE TRIGGER noted BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION note();
CREATE SEQUENCE alone INCREMENT BY 5;
CREATE SEQUENCE alone2;
CREATE MATERIALIZED VIEW stored AS SELECT n FROM plain;
CREATE VIEW sums AS SELECT sum(price) AS s FROM plain;
CREATE VIEW of_sums AS SELECT s FROM sums;
CREATE INDEX words ON plain USING gin (to_tsvector('simple', name));
CREATE INDEX hashed ON plain USING hash (n);
CREATE RULE nothing AS ON DELETE TO plain DO INSTEAD NOTHING;
ALTER TABLE plain ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON plain USING (n = 1);
CREATE PUBLICATION p FOR TABLE plain;
INSERT INTO plain (n) VALUES (1);
SELECT lo_create(4711);
