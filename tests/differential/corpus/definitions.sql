== create table
CREATE TABLE a (id int);
CREATE TABLE a (id int);
CREATE TABLE IF NOT EXISTS a (id int);
CREATE TABLE b (id int, id int);
CREATE TABLE c (id int PRIMARY KEY, x int PRIMARY KEY);
CREATE TABLE d (); -- refused syntax error at or near ''
CREATE TABLE f AS SELECT 1 AS x, 'a'::text AS y; -- documented tags
SELECT * FROM f;
CREATE TABLE g AS SELECT id FROM a WHERE false; -- documented tags
SELECT * FROM g;
CREATE TABLE h (LIKE a); -- refused LIKE
CREATE TABLE "Quoted Name" ("a b" int, "SELECT" int);
INSERT INTO "Quoted Name" ("a b", "SELECT") VALUES (1, 2);
SELECT "a b", "SELECT" FROM "Quoted Name";
CREATE TABLE MixedCase (Id int);
INSERT INTO mixedcase (ID) VALUES (1);
SELECT iD FROM MIXEDCASE;
SELECT * FROM MixedCase; -- documented case-of-names
CREATE TEMP TABLE tt (id int); -- refused a temporary table or view
CREATE SCHEMA public; -- documented sqlstates
CREATE UNLOGGED TABLE ul (id int); -- refused CREATE UNLOGGED TABLE
CREATE TABLE public.pt (id int);
SELECT * FROM public.pt;
SELECT pt.id FROM public.pt;
SELECT public.pt.id FROM public.pt;
CREATE TABLE sx.a (id int);
DROP TABLE a;
DROP TABLE a;
DROP TABLE IF EXISTS a;
DROP TABLE f, g;
DROP TABLE IF EXISTS f, g;
DROP TABLE pt CASCADE;
CREATE TABLE k (a int DEFAULT 1 + 1, b text DEFAULT 'x' || 'y', c timestamp DEFAULT now());
INSERT INTO k DEFAULT VALUES;
SELECT a, b FROM k;
CREATE TABLE l (a int) WITHOUT ROWID; -- documented sqlite-syntax
CREATE TABLE m (a int) STRICT; -- documented sqlite-syntax
CREATE TABLE n (a); -- documented sqlite-syntax
CREATE TABLE o (id INTEGER PRIMARY KEY AUTOINCREMENT); -- documented sqlite-syntax
CREATE TABLE q (a int, CONSTRAINT pk PRIMARY KEY (a));
CREATE TABLE r (a int) PARTITION BY RANGE (a); -- refused PARTITION BY
CREATE TABLE t (a int[]); -- refused array
CREATE TABLE u (a int4, b int8, c int2, d float4, e float8, f bool, g varchar, h character varying(9), i decimal, j double precision, k timestamp with time zone, l timestamp without time zone, m time without time zone, n bigint, o smallint, p real);
SELECT * FROM u;
CREATE TABLE v (a interval); -- refused type interval
CREATE TABLE w (a inet); -- refused type inet
CREATE TYPE mood AS ENUM ('a', 'b'); -- refused CREATE TYPE
CREATE DOMAIN dom AS int; -- refused CREATE DOMAIN
CREATE TABLE e2 (id nosuchtype); -- documented unknown-types
CREATE TABLE x (a text COLLATE "C");
CREATE TABLE y (a int CHECK (nosuch > 1));
CREATE TABLE z (a int DEFAULT 'abc');

== alter table
CREATE TABLE a (id int PRIMARY KEY, b text);
INSERT INTO a VALUES (1, 'x');
ALTER TABLE a ADD COLUMN c int;
ALTER TABLE a ADD d int DEFAULT 7;
ALTER TABLE a ADD COLUMN b text;
ALTER TABLE a ADD COLUMN IF NOT EXISTS b text;
ALTER TABLE a ADD COLUMN e int NOT NULL; -- documented sqlstates
ALTER TABLE a ADD COLUMN f int NOT NULL DEFAULT 3;
SELECT * FROM a;
ALTER TABLE a RENAME COLUMN b TO bb;
ALTER TABLE a RENAME bb TO b3;
ALTER TABLE a RENAME COLUMN nosuch TO x;
SELECT b3 FROM a;
ALTER TABLE a DROP COLUMN c;
ALTER TABLE a DROP COLUMN nosuch;
ALTER TABLE a DROP COLUMN IF EXISTS nosuch;
ALTER TABLE a RENAME TO aa;
SELECT * FROM aa;
ALTER TABLE aa ALTER COLUMN d SET NOT NULL;
ALTER TABLE aa ALTER COLUMN d DROP NOT NULL;
ALTER TABLE aa ALTER COLUMN d SET DEFAULT 8; -- refused ALTER COLUMN
ALTER TABLE aa ALTER COLUMN d DROP DEFAULT; -- refused ALTER TABLE
ALTER TABLE aa ALTER COLUMN d TYPE bigint; -- refused ALTER TABLE
ALTER TABLE aa ADD CONSTRAINT u UNIQUE (d);
ALTER TABLE aa ADD CHECK (d > 0);
ALTER TABLE aa DROP CONSTRAINT u;
ALTER TABLE nosuch ADD COLUMN x int;
ALTER TABLE IF EXISTS nosuch ADD COLUMN x int; -- refused ALTER TABLE IF EXISTS
INSERT INTO aa (id, d) VALUES (2, 9);
SELECT * FROM aa ORDER BY id;
ALTER TABLE aa ADD COLUMN x int, ADD COLUMN y int; -- refused ALTER TABLE
ALTER TABLE aa DROP COLUMN id; -- documented dropping-constraints

== set not null on rows with null
CREATE TABLE a (id int, v int);
INSERT INTO a VALUES (1, NULL);
ALTER TABLE a ALTER COLUMN v SET NOT NULL;
INSERT INTO a VALUES (2, NULL);

== indexes
CREATE TABLE a (id int PRIMARY KEY, b text, c int);
INSERT INTO a VALUES (1, 'x', 1), (2, 'X', 1);
CREATE INDEX a_b ON a (b);
CREATE INDEX a_b ON a (b);
CREATE INDEX IF NOT EXISTS a_b ON a (b);
CREATE UNIQUE INDEX a_c ON a (c);
CREATE UNIQUE INDEX a_b2 ON a (b);
INSERT INTO a VALUES (3, 'x', 3);
CREATE INDEX ON a (c); -- refused CREATE INDEX
CREATE INDEX a_l ON a (lower(b));
CREATE INDEX a_d ON a (c DESC);
CREATE INDEX a_w ON a (c) WHERE c > 1;
CREATE INDEX a_m USING btree ON a (c);
CREATE INDEX a_m ON a USING btree (c);
CREATE INDEX CONCURRENTLY a_n ON a (c);
CREATE INDEX a_g ON a USING gin (b); -- documented sqlstates
CREATE INDEX a_x ON nosuch (b);
CREATE INDEX a_y ON a (nosuch);
DROP INDEX a_b;
DROP INDEX a_b;
DROP INDEX IF EXISTS a_b;
DROP INDEX a_l, a_d;
DROP INDEX a_w CASCADE;

== other statements
COMMENT ON TABLE nosuch IS 'x'; -- documented sqlstates
CREATE FUNCTION f() RETURNS int AS 'SELECT 1' LANGUAGE sql; -- refused CREATE FUNCTION
CREATE EXTENSION IF NOT EXISTS nosuch;
GRANT SELECT ON nosuch TO public;
ANALYZE;
VACUUM;
EXPLAIN SELECT 1; -- documented explain
EXPLAIN (COSTS OFF) SELECT 1;
EXPLAIN (COSTS FALSE, VERBOSE 0) VALUES (1), (2);
EXPLAIN (COLOUR) SELECT 1;
EXPLAIN (ANALYZE maybe) SELECT 1;
EXPLAIN (FORMAT toml) SELECT 1;
EXPLAIN (FORMAT xml) SELECT 1; -- refused FORMAT
EXPLAIN SELECT * FROM nosuch;
EXPLAIN;
LISTEN channel;
NOTIFY channel;
NOTIFY channel, 'payload';
NOTIFY channel 'payload';
SELECT pg_notify('channel', 'payload');
SELECT pg_notify('', 'payload');
NOTIFY "a channel with a name that is longer than the sixty-three bytes allowed";
UNLISTEN channel;
UNLISTEN *;
LISTEN;
SHOW server_version_num; -- documented session-parameters
SHOW client_encoding;
SHOW TimeZone;
SHOW transaction_isolation; -- documented session-parameters
SHOW standard_conforming_strings;
SHOW DateStyle;
SHOW nosuch;
SET nosuch = 1; -- documented session-parameters
SET nosuch.x = 1;
SHOW nosuch.x;
SET TimeZone = 'Europe/Berlin'; -- refused TimeZone
SET TimeZone = 'UTC';
SET DateStyle = 'German'; -- refused DateStyle
SET application_name = 'x';
SHOW application_name;
RESET application_name;
SET work_mem = '4MB';
SET datestyle = 'ISO, MDY';
SET extra_float_digits = 3;
PREPARE p AS SELECT 1; -- refused PREPARE
DECLARE c CURSOR FOR SELECT 1; -- documented sqlstates
LOCK TABLE nosuch; -- documented sqlstates
DO $$ BEGIN END $$; -- refused DO is
CALL nosuch(); -- documented sqlstates
CHECKPOINT;
DISCARD ALL;
PRAGMA user_version; -- documented sqlite-syntax
ATTACH 'x' AS y; -- documented sqlite-syntax
SELEC 1;
SELECT FROM;
SELECT 1 +;
SELECT (1;
SELECT 1);
SELECT 'unterminated;
;

== create table as
CREATE TABLE t (id int, v varchar(5), n numeric(10,2), b bool, ts timestamp, tz timestamptz, d date, u uuid, j jsonb, y bytea, f float8);
INSERT INTO t VALUES (7, 'Abc', 5, true, '2024-01-02 03:04:05', '2024-01-02 03:04:05+02', '2024-01-02', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"a": 1}', '\x01ff', 1.5);
CREATE TABLE a AS SELECT * FROM t; -- documented tags
SELECT * FROM a;
INSERT INTO a (id) VALUES ('abc');
INSERT INTO a (v) VALUES ('abcdef');
INSERT INTO a (b) VALUES ('abc');
INSERT INTO a (ts) VALUES ('abc');
INSERT INTO a (u) VALUES ('abc');
CREATE TABLE b AS SELECT n / 2 AS h, id / 2 AS k, v LIKE 'a%' AS l, v ILIKE 'a%' AS m, b || 'x' AS q, n::int AS c FROM t; -- documented tags
SELECT h = 2.5, k, l, m, q, c FROM b;
CREATE TABLE c AS SELECT 1 / 0 AS x;
CREATE TABLE c AS SELECT v::int AS x FROM t;
CREATE TABLE c AS SELECT CAST('abc' AS integer) AS x;
CREATE TABLE c AS SELECT "nosuch" FROM t;
CREATE TABLE c AS SELECT id, v FROM t GROUP BY id;
CREATE TABLE c AS SELECT v FROM t WHERE id = 'abc';
CREATE TABLE c AS SELECT v FROM t WHERE v = 7;
CREATE TABLE c AS SELECT 1 AS x, 2 AS x;
CREATE TABLE c AS SELECT 9223372036854775807 + id AS x FROM t;
CREATE TABLE c (x, y, z) AS SELECT 1, 2;
CREATE TABLE c AS SELECT v FROM t WHERE ts = '2024-1-2 3:4:5'; -- documented tags
SELECT * FROM c;
CREATE TABLE e (x, y) AS VALUES (1, 'a'), (2, NULL); -- documented tags
SELECT x, y FROM e ORDER BY 1;
CREATE TABLE f AS WITH q AS (SELECT id AS i FROM t) SELECT i, i + 1 AS k, true AS l FROM q; -- documented tags
SELECT * FROM f;
CREATE TABLE g AS SELECT v FROM t UNION ALL SELECT 'abcdefgh'; -- documented tags
SELECT v FROM g ORDER BY 1;
CREATE TABLE h AS SELECT now()::date = current_date AS same; -- documented tags
SELECT same FROM h;
CREATE TABLE i AS (SELECT id FROM t); -- documented tags
CREATE TABLE i AS SELECT id FROM t;
CREATE TABLE IF NOT EXISTS i AS SELECT 1 / 0; -- documented tags
SELECT * FROM i;
CREATE TABLE k AS SELECT id + $1::int AS s, $2::text AS p FROM t; -- with ? 5, ? "x" / documented tags
SELECT * FROM k;
CREATE TABLE l AS SELECT * FROM t WITH NO DATA; -- refused WITH NO DATA
BEGIN;
CREATE TABLE m AS SELECT id FROM t; -- documented tags
SAVEPOINT s;
CREATE TABLE n AS SELECT id FROM m; -- documented tags
ROLLBACK TO s;
CREATE TABLE n AS SELECT id + 1 AS id FROM m; -- documented tags
COMMIT;
SELECT id FROM n;

== defaults are what an insert would store
CREATE TABLE t (id int);
INSERT INTO t VALUES (1);
ALTER TABLE t ADD COLUMN a integer DEFAULT 99.5;
ALTER TABLE t ADD COLUMN b numeric(10,2) DEFAULT 1.005;
ALTER TABLE t ADD COLUMN c varchar(3) DEFAULT 12345;
ALTER TABLE t ADD COLUMN c varchar(2) DEFAULT 'abc';
ALTER TABLE t ADD COLUMN c numeric(4,1) DEFAULT 12345;
ALTER TABLE t ADD COLUMN c boolean DEFAULT 5;
ALTER TABLE t ADD COLUMN c date DEFAULT 5;
ALTER TABLE t ADD COLUMN c bytea DEFAULT 5;
ALTER TABLE t ADD COLUMN c jsonb DEFAULT 5;
ALTER TABLE t ADD COLUMN c uuid DEFAULT 5;
ALTER TABLE t ADD COLUMN c bigint DEFAULT 12345678901234567890;
ALTER TABLE t ADD COLUMN c text DEFAULT 5;
ALTER TABLE t ADD COLUMN d text DEFAULT true;
ALTER TABLE t ADD COLUMN e int DEFAULT 1.7::int;
ALTER TABLE t ADD COLUMN f int DEFAULT '1.7'::numeric;
INSERT INTO t (id) VALUES (2);
SELECT * FROM t ORDER BY id;
CREATE TABLE u (a int DEFAULT 99.5, b numeric(10,2) DEFAULT 1.005, c text DEFAULT true, d text DEFAULT 1.50);
INSERT INTO u DEFAULT VALUES;
SELECT * FROM u;

== mistakes in definitions
CREATE TABLE t (id int PRIMARY KEY, a text);
CREATE TABLE a (a int PRIMARY KEY, PRIMARY KEY (a));
CREATE TABLE a (a int, b int, PRIMARY KEY (a), PRIMARY KEY (b));
CREATE TABLE a (a int, FOREIGN KEY (nosuch) REFERENCES t (id));
CREATE TABLE a (a int, FOREIGN KEY (a) REFERENCES t (id, a));
CREATE TABLE nosuch.a (a int);
CREATE TABLE a (a int, b int DEFAULT a);
CREATE TABLE a (a int, b int GENERATED ALWAYS AS (nosuch) STORED);
ALTER TABLE t ADD CONSTRAINT ck CHECK (id > 0);
ALTER TABLE t ADD CONSTRAINT ck CHECK (id > 0);
ALTER TABLE t DROP CONSTRAINT nosuch;
INSERT INTO t VALUES (1, 'x');
ALTER TABLE t ADD COLUMN c int CHECK (c > 0) DEFAULT -1;
ALTER TABLE t ALTER id TYPE bigserial;
CREATE VIEW v AS SELECT nosuch FROM t;
SELECT x FROM v;
SELECT a FROM t;

== expressions in definitions
CREATE TABLE t (id int CHECK (id > 0), s text CHECK (s LIKE 'A%'), CONSTRAINT c CHECK (length(s) < 5));
INSERT INTO t VALUES (1, 'abc');
INSERT INTO t VALUES (1, 'Abc');
INSERT INTO t VALUES (0, 'Abc');
INSERT INTO t VALUES (1, 'Abcdef');
CREATE TABLE u (n numeric(10,2), k int, p numeric(10,4) GENERATED ALWAYS AS (n / k) STORED); -- refused a division of numerics
CREATE TABLE v (a int, b int GENERATED ALWAYS AS (a + 1) STORED, d bool GENERATED ALWAYS AS (a > 1) STORED, e bool GENERATED ALWAYS AS (a::text LIKE '1%') STORED);
CREATE TABLE v2 (a int, b int GENERATED ALWAYS AS (a + 1) STORED, d bool GENERATED ALWAYS AS (a > 1) STORED);
INSERT INTO v2(a) VALUES (1),(2);
SELECT * FROM v2;
CREATE TABLE x (a text CHECK (a IN ('p','q')), b int CHECK (b BETWEEN 1 AND 3), c text CHECK (c ~ '^a'), d numeric CHECK (d > 1.5)); -- refused a regular expression
CREATE TABLE x1 (a text CHECK (a IN ('p','q')), b int CHECK (b BETWEEN 1 AND 3), d numeric CHECK (d > 1.5), e date CHECK (e > '2024-1-1'));
INSERT INTO x1 VALUES ('p', 2, 2, '2024-01-02');
INSERT INTO x1 VALUES ('p', 2, 2, '2023-01-02');
INSERT INTO x1 VALUES ('p', 2, 2, '2023-11-02');
INSERT INTO x1 VALUES ('P', 2, 2, NULL);
CREATE TABLE y (ts timestamptz CHECK (ts > '2024-01-01T00:00:00Z'), u uuid CHECK (u <> 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'), b bool CHECK (b = 't'), n int CHECK (n = '5'), k bool CHECK (k IS TRUE), m bool CHECK (m), w text CHECK (w = E'a\'b'));
INSERT INTO y(ts) VALUES ('2024-01-01 00:00:01+00');
INSERT INTO y(ts) VALUES ('2024-01-01 00:00:00+00');
INSERT INTO y(u) VALUES ('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11');
INSERT INTO y(b) VALUES (true);
INSERT INTO y(b) VALUES (false);
INSERT INTO y(n) VALUES (5);
INSERT INTO y(k) VALUES (true);
INSERT INTO y(m) VALUES (true);
INSERT INTO y(w) VALUES ('a''b');
CREATE TABLE z1 (a int CHECK (a > 'abc'));
CREATE TABLE z2 (a int, b text CHECK (b = a));
CREATE TABLE z3 (a int, b int, CHECK (a / b > 1));
CREATE TABLE z4 (price numeric(8,2), qty int, CHECK (price * qty < 100));
INSERT INTO z4 VALUES (10.5, 9);
INSERT INTO z4 VALUES (10.5, 10);
CREATE TABLE z5 (a serial primary key CHECK (a < 3), b text CHECK ("b" NOT LIKE '%X%' AND b <> ''));
INSERT INTO z5(b) VALUES ('x'), ('aXb');
CREATE TABLE z6 (a text, b text GENERATED ALWAYS AS (a || '-' || upper(a)) STORED, c int GENERATED ALWAYS AS (char_length(a)) STORED, d text GENERATED ALWAYS AS (substring(a from 1 for 2)) STORED, e text GENERATED ALWAYS AS (coalesce(a, 'none')) STORED);
INSERT INTO z6(a) VALUES ('abc'), (NULL);
SELECT * FROM z6;
CREATE TABLE z7 (a date, b date CHECK (b > a), c int CHECK (c % 2 = 0), d text CHECK (d IN ('a', 'b') OR d IS NULL), e int CHECK (e = ANY (ARRAY[1, 2])), f int CHECK (f IN (1, 2)));
INSERT INTO z7 VALUES ('2024-01-01', '2024-01-02', 2, 'a', 2, 1);
INSERT INTO z7(e) VALUES (3);
CREATE TABLE z9 (a jsonb CHECK (a ->> 'k' = 'v'), b date CHECK (b <= current_date)); -- refused ->>
CREATE TABLE za (a timestamp CHECK (a >= '2024-01-01'::timestamp), b varchar(5) CHECK ((b)::text <> ''::text), c numeric CHECK (c >= (0)::numeric));
INSERT INTO za VALUES ('2024-01-01', 'x', 1);
INSERT INTO za(a) VALUES ('2023-12-31');
INSERT INTO za(b) VALUES ('');
INSERT INTO za(c) VALUES (-1);
CREATE TABLE zb (a boolean CHECK (a IN (true, false)), b smallint CHECK (b >= 0), c bool DEFAULT false CHECK (NOT c OR b > 1));
INSERT INTO zb VALUES (true, 1, false);
INSERT INTO zb VALUES (true, 1, true);

== expressions of indexes and of checks that are added
CREATE TABLE t (id int, s text, n numeric(8,2), d date, j jsonb, "Mixed" text);
INSERT INTO t VALUES (1, 'Abc', 5, '2024-01-05', '{}', 'x');
ALTER TABLE t ADD CONSTRAINT k1 CHECK (s LIKE 'A%');
ALTER TABLE t ADD CHECK (d >= '2024-1-5');
ALTER TABLE t ADD CHECK (s LIKE 'a%');
ALTER TABLE t ADD CHECK (n * 2 < 100 AND n > '1');
INSERT INTO t (s) VALUES ('abc');
INSERT INTO t (d) VALUES ('2024-01-04');
INSERT INTO t (n) VALUES (50);
ALTER TABLE t ADD CONSTRAINT k2 CHECK (n / 2 > 1); -- refused a division of numerics
ALTER TABLE t ADD CONSTRAINT k3 CHECK (id > 'abc');
ALTER TABLE t ADD CONSTRAINT k3 CHECK (s > 5);
CREATE UNIQUE INDEX i1 ON t (id) WHERE d > '2024-1-5';
INSERT INTO t (id, d) VALUES (1, '2024-01-06');
INSERT INTO t (id, d) VALUES (1, '2024-01-07');
INSERT INTO t (id, d) VALUES (1, '2024-01-05');
CREATE UNIQUE INDEX i2 ON t (lower(s) DESC, (id + 1)) WHERE s LIKE 'AB%';
INSERT INTO t (id, s) VALUES (4, 'ABc'), (4, 'ABC');
INSERT INTO t (id, s) VALUES (4, 'Abc'), (4, 'AbC');
CREATE UNIQUE INDEX i3 ON t ((n / 2)); -- refused a division of numerics
CREATE INDEX i4 ON t ((n / 2), s COLLATE "C" DESC) WHERE n / 2 > 1;
CREATE INDEX i5 ON t ((j ->> 'a'));
CREATE INDEX i6 ON t ("Mixed" DESC, upper("Mixed"));
CREATE INDEX i7 ON t (nosuch);
CREATE INDEX i7 ON t (lower(nosuch));
SELECT count(*) FROM t WHERE lower(s) = 'abc' AND n / 2 = 2.5;
CREATE TABLE u (a int, b numeric(8,2));
INSERT INTO u VALUES (1, 5);
ALTER TABLE u ADD COLUMN c text CHECK (c LIKE 'A%' AND a < '9') DEFAULT 'Ax';
ALTER TABLE u ADD e date CONSTRAINT ce CHECK (e > '2024-1-5');
INSERT INTO u (c) VALUES ('ax');
INSERT INTO u (e) VALUES ('2024-01-05');
INSERT INTO u (c, e) VALUES ('AX', '2024-01-06');
ALTER TABLE u ADD COLUMN f text CHECK (f ~ 'x'); -- refused a regular expression
SELECT a, b, c, e FROM u ORDER BY c;

== keys of tables that exist
CREATE TABLE a (id int, s text, n int);
INSERT INTO a VALUES (1, 'x', 1), (2, 'y', NULL);
ALTER TABLE a ADD PRIMARY KEY (nosuch);
ALTER TABLE a ADD PRIMARY KEY (id, id);
ALTER TABLE a ADD PRIMARY KEY (n);
ALTER TABLE nosuch ADD PRIMARY KEY (id);
ALTER TABLE a ADD PRIMARY KEY (id DESC);
ALTER TABLE a ADD PRIMARY KEY (lower(s));
ALTER TABLE ONLY a ADD CONSTRAINT a_key PRIMARY KEY (id);
ALTER TABLE a ADD PRIMARY KEY (s);
INSERT INTO a VALUES (1, 'z', 1);
INSERT INTO a (s) VALUES ('z');
INSERT INTO a VALUES (1, 'new', 5) ON CONFLICT (id) DO UPDATE SET s = excluded.s;
SELECT * FROM a ORDER BY id;
SELECT id, s, count(*) FROM a GROUP BY id ORDER BY id;
SELECT conname, contype FROM pg_constraint WHERE conrelid = 'a'::regclass;
ALTER TABLE a ALTER COLUMN id DROP NOT NULL;
DROP INDEX a_key;
CREATE TABLE b (a_id int REFERENCES a, t int);
INSERT INTO b VALUES (9, 1);
INSERT INTO b VALUES (1, 1);
DELETE FROM a WHERE id = 1;
ALTER TABLE a DROP CONSTRAINT a_key;
CREATE TABLE c (x int, y int);
INSERT INTO c VALUES (1, 7), (2, NULL);
ALTER TABLE c ADD CONSTRAINT c_x FOREIGN KEY (x) REFERENCES a;
ALTER TABLE c ADD FOREIGN KEY (y) REFERENCES a (id);
ALTER TABLE c ADD FOREIGN KEY (y) REFERENCES a (n);
ALTER TABLE c ADD FOREIGN KEY (nosuch) REFERENCES a (id);
ALTER TABLE c ADD FOREIGN KEY (y) REFERENCES nosuch (id);
INSERT INTO c VALUES (3, 1);
DROP TABLE b;
DROP TABLE c;
ALTER TABLE a DROP CONSTRAINT a_key;
INSERT INTO a VALUES (1, 'again', 1);
ALTER TABLE a ADD PRIMARY KEY (id);
ALTER TABLE a ADD UNIQUE (id);
ALTER TABLE a ADD PRIMARY KEY (id, s);
CREATE TABLE e (id integer, s text);
ALTER TABLE e ADD PRIMARY KEY (id);
INSERT INTO e (s) VALUES ('x');
INSERT INTO e VALUES (1, 'x');
SELECT constraint_name FROM information_schema.table_constraints WHERE table_name = 'e' AND constraint_type = 'PRIMARY KEY';
SELECT constraint_name, column_name FROM information_schema.key_column_usage WHERE table_name = 'e';
CREATE TABLE f (id bigint, s text);
ALTER TABLE f ADD PRIMARY KEY (id, s);
INSERT INTO f VALUES (1, NULL);
CREATE UNIQUE INDEX f_i ON f (id);
CREATE TABLE g (f_id bigint REFERENCES f (id));
CREATE TABLE h (id int);
CREATE UNIQUE INDEX h_i ON h (id);
ALTER TABLE h ADD CONSTRAINT h_k PRIMARY KEY USING INDEX h_i; -- refused USING INDEX
VACUUM e;
VACUUM (ANALYZE) e; -- documented tags
VACUUM ANALYZE; -- documented tags
VACUUM (NONSENSE) e;
