-- Statements as a whole: joins, grouping, queries in changes.

== the columns of joins
CREATE TABLE a (id int PRIMARY KEY, x int, y int, t text);
CREATE TABLE b (id int PRIMARY KEY, x int, z int, t text);
CREATE TABLE c (x int, w int);
INSERT INTO a VALUES (1, 1, 10, 'a'), (2, 1, 20, 'b'), (3, NULL, 30, 'a'), (4, 2, NULL, NULL), (5, 2, 20, 'c');
INSERT INTO b VALUES (1, 1, 100, 'a'), (2, 1, 200, 'x'), (3, 2, NULL, 'b'), (4, NULL, 400, NULL), (7, 3, 700, 'a');
INSERT INTO c VALUES (1, 5), (2, 6), (NULL, 7), (4, 8);
SELECT * FROM a JOIN b USING (x) ORDER BY 2, 5;
SELECT * FROM a LEFT JOIN b USING (x) ORDER BY 2, 5;
SELECT * FROM a RIGHT JOIN b USING (x) ORDER BY 2, 5;
SELECT * FROM a FULL JOIN b USING (x) ORDER BY 2, 5;
SELECT * FROM a NATURAL JOIN b;
SELECT * FROM a NATURAL LEFT JOIN c ORDER BY id;
SELECT * FROM a JOIN b USING (t, x) ORDER BY 3, 5;
SELECT * FROM a FULL JOIN b USING (x) FULL JOIN c USING (x) ORDER BY 1, 2, 5, 8;
SELECT * FROM a JOIN b USING (id) JOIN c ON c.x = b.x ORDER BY id;
SELECT a.*, x FROM a JOIN b USING (x) ORDER BY 1, b.id;
SELECT x, count(*) FROM a FULL JOIN b USING (x) GROUP BY x ORDER BY 1;
SELECT * FROM (a JOIN b USING (id)) j ORDER BY id;
SELECT j.id, z FROM (a JOIN b USING (id)) j ORDER BY id;
SELECT * FROM (SELECT * FROM a JOIN b USING (id)) q ORDER BY id;
CREATE TABLE target (p int, q int, r int);
INSERT INTO target SELECT * FROM c JOIN (SELECT x, id FROM a) i USING (x);
SELECT * FROM target ORDER BY 1, 2, 3;
SELECT * FROM a, b RIGHT JOIN c USING (x) ORDER BY a.id, c.w, b.id;
SELECT a.id, b.id, c.w FROM a, b FULL JOIN c ON b.x = c.x ORDER BY 1, 2, 3;
SELECT a.id, b.id, c.w FROM a, b NATURAL JOIN c ORDER BY 1, 2, 3;
SELECT * FROM a LEFT JOIN b JOIN c ON c.x = b.x ON a.id = b.id ORDER BY a.id, c.w;
SELECT * FROM a, b JOIN c ON a.x = c.x;
SELECT * FROM a, (SELECT b.z FROM b WHERE b.x = a.x) l;
SELECT * FROM a, LATERAL (SELECT b.z FROM b WHERE b.x = a.x) l; -- refused LATERAL
SELECT * FROM a JOIN b WHERE a.id = b.id;
SELECT * FROM a LEFT JOIN b;
SELECT * FROM a CROSS JOIN b ON a.id = b.id;
SELECT * FROM a NATURAL JOIN b ON a.id = b.id;
SELECT * FROM a JOIN b USING (x, x);
SELECT * FROM a JOIN b USING (nope);
SELECT * FROM a JOIN b ON a.x = b.x NATURAL JOIN c;
SELECT a.id FROM a, a;
SELECT id FROM a, b;
SELECT x FROM (SELECT 1 AS x, 2 AS x) s;
SELECT nope.x FROM a;
DELETE FROM target USING a WHERE p = x AND id = 1;
DELETE FROM a USING b WHERE id = 1;
UPDATE target SET p = a.y FROM a WHERE id = q RETURNING p;
UPDATE a SET y = 1 FROM b WHERE id = 1;
UPDATE a SET y = 1 FROM a WHERE true;

== rows and names of VALUES and WITH
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(n) ORDER BY n;
SELECT * FROM (VALUES (1, 'a')) v(n, s, q);
VALUES (1), (2), (NULL) ORDER BY 1 DESC;
VALUES (1), (2), (3) ORDER BY 1 LIMIT 2;
VALUES (1) UNION VALUES (2) ORDER BY 1;
WITH w(q) AS (SELECT 1, 2 AS y) SELECT q, y FROM w;
WITH w(q, r) AS (SELECT 1) SELECT * FROM w;
WITH w AS (SELECT 1), w AS (SELECT 2) SELECT * FROM w;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT n + 1 FROM r WHERE n < 3)) SELECT * FROM r;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT count(*) FROM r) SELECT * FROM r;
WITH RECURSIVE r(n) AS (SELECT n FROM r UNION ALL SELECT 1) SELECT * FROM r;
WITH r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r;
WITH v AS (SELECT * FROM w), w AS (SELECT 1) SELECT * FROM v;
CREATE TABLE w (n int);
INSERT INTO w VALUES (40), (50);
WITH w AS (SELECT n + 1 AS n FROM w) SELECT * FROM w ORDER BY n;
WITH w AS (SELECT 1 AS n) SELECT * FROM public.w ORDER BY n;
WITH v AS (SELECT * FROM w), w AS (SELECT 1 AS n) SELECT v.n, w.n FROM v, w ORDER BY 1;
WITH c AS (INSERT INTO w VALUES (1) RETURNING n) SELECT * FROM c; -- refused INSERT, UPDATE and DELETE in WITH

== what stands beside an aggregate
CREATE TABLE a (id int PRIMARY KEY, x int, y int);
CREATE TABLE b (id int PRIMARY KEY, x int, z int);
INSERT INTO a VALUES (1, 1, 10), (2, 1, 20), (3, NULL, 30);
INSERT INTO b VALUES (1, 1, 100), (2, 1, 200);
SELECT a.id, b.z FROM a LEFT JOIN b ON b.x = a.x GROUP BY a.id;
SELECT a.id, a.y, count(b.z) FROM a LEFT JOIN b ON b.x = a.x GROUP BY a.id ORDER BY a.id;
SELECT b.x, count(*) FROM a JOIN b ON a.id = b.id GROUP BY a.x;
SELECT x FROM a GROUP BY x ORDER BY y;
SELECT x FROM a GROUP BY x ORDER BY max(y), x;
SELECT x, (SELECT max(z) FROM b WHERE b.id = a.id) FROM a GROUP BY x;
SELECT x, (SELECT max(z) FROM b WHERE b.x = a.x) FROM a GROUP BY x ORDER BY x;
SELECT id, (SELECT sum(a.x) FROM b) FROM a;
SELECT (SELECT count(a.x)) FROM a;
SELECT x AS q FROM a WHERE q > 1;
SELECT count(*) AS q FROM a HAVING q > 1;
SELECT x AS k FROM a GROUP BY k + 1;
SELECT -x AS q FROM a ORDER BY -q;
SELECT -x AS x FROM a ORDER BY x + 1;
SELECT x FROM a GROUP BY 2;
SELECT x FROM a GROUP BY 'x';
SELECT x FROM a ORDER BY 0;
SELECT x FROM a ORDER BY -1;
SELECT DISTINCT x FROM a ORDER BY x + 1;
SELECT DISTINCT x + 1 FROM a ORDER BY x + 1;
SELECT DISTINCT x AS q FROM a ORDER BY q;
SELECT DISTINCT a.x FROM a JOIN b ON a.id = b.id ORDER BY b.x;
SELECT x FROM a UNION SELECT x FROM b ORDER BY x + 1;
SELECT x FROM a UNION SELECT 'x';
SELECT x FROM a UNION SELECT y::text FROM a;
SELECT count(*) FROM a FOR UPDATE;
SELECT x FROM a GROUP BY x FOR UPDATE;
SELECT DISTINCT x FROM a FOR UPDATE;
SELECT x FROM a UNION SELECT x FROM b FOR UPDATE;

== rows as conditions
CREATE TABLE a (id int PRIMARY KEY, x int, y int);
INSERT INTO a VALUES (1, 1, 10), (2, 1, 20), (3, NULL, 30), (4, NULL, NULL);
SELECT id FROM a WHERE (x, y) IS NULL;
SELECT id FROM a WHERE (x, y) IS NOT NULL ORDER BY id;
SELECT id FROM a WHERE NOT (x, y) IS NULL ORDER BY id;
SELECT id FROM a WHERE (x, y) = (SELECT x, y FROM a WHERE id < 3);
SELECT id FROM a WHERE (x, y) = (SELECT x, y FROM a WHERE id = 2);
SELECT id FROM a WHERE (x, y) = (SELECT x, y FROM a WHERE id = 9);
UPDATE a SET (x, y) = (SELECT x, y FROM a) WHERE id = 1;
UPDATE a SET (x, y) = (SELECT x, y FROM a WHERE id = 9) WHERE id = 1 RETURNING *;
UPDATE a SET (x, y) = (SELECT 7, 8) WHERE id = 1 RETURNING *;
UPDATE a SET (x, y) = (1) WHERE id = 1;
UPDATE a SET (x, y) = (1, 2, 3) WHERE id = 1;

== queries in a change see the rows before it
CREATE TABLE a (id int PRIMARY KEY, x int, y int);
INSERT INTO a VALUES (1, 1, 10), (2, 1, 20), (3, NULL, 30), (4, 2, NULL), (5, 2, 20);
UPDATE a SET y = (SELECT max(y) FROM a o WHERE o.id < a.id);
SELECT id, y FROM a ORDER BY id;
UPDATE a SET x = (SELECT count(*) FROM a o WHERE o.x = a.x), y = y + 1 RETURNING id, x, y;
SELECT * FROM a ORDER BY id;
UPDATE a AS k SET x = coalesce((SELECT o.x FROM a o WHERE o.id = k.id - 1), -1) WHERE k.id > 1;
SELECT * FROM a ORDER BY id;
DELETE FROM a WHERE (SELECT count(*) FROM a o WHERE o.x = a.x) > 1;
SELECT * FROM a ORDER BY id;
INSERT INTO a VALUES ((SELECT max(id) + 1 FROM a), 1, 1), ((SELECT max(id) + 1 FROM a), 1, 1);
INSERT INTO a SELECT id + 100, x, y FROM a;
SELECT * FROM a ORDER BY id;
UPDATE a SET y = 1 RETURNING id, (SELECT sum(y) FROM a); -- refused changed table
INSERT INTO a VALUES (7), (8) RETURNING (SELECT count(*) FROM a); -- refused changed table
DELETE FROM a WHERE id > 100 RETURNING (SELECT count(*) FROM a); -- refused changed table
INSERT INTO a VALUES (1, 1, 1), (2, 2, 2) ON CONFLICT (id) DO UPDATE SET y = (SELECT max(y) FROM a); -- refused changed table

== columns without values
CREATE TABLE t (id int PRIMARY KEY, v int DEFAULT 5, n text NOT NULL DEFAULT 'd', g int GENERATED ALWAYS AS (v + 1) STORED);
INSERT INTO t VALUES (1) RETURNING *;
INSERT INTO t VALUES (2, 7), (3, NULL) RETURNING *;
INSERT INTO t AS k VALUES (4, 8) RETURNING k.id, k.n;
INSERT INTO t SELECT 5, 9 RETURNING *;
INSERT INTO t SELECT id + 10 FROM t ORDER BY id LIMIT 1 RETURNING *;
INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING;
INSERT INTO t (id, g) VALUES (6, 1);
UPDATE t SET g = 1;

== a row that one INSERT meets twice
CREATE TABLE t (id int PRIMARY KEY, u int UNIQUE, v int);
INSERT INTO t VALUES (1, 1, 1), (2, 2, 2);
INSERT INTO t VALUES (3, 3, 1), (3, 4, 2) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO t VALUES (3, 3, 1), (4, 3, 2) ON CONFLICT (u) DO UPDATE SET v = excluded.v;
INSERT INTO t VALUES (1, 1, 5), (1, 1, 6) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO t SELECT 1, i, i FROM generate_series(7, 9) i ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO t VALUES (3, 3, 1), (3, 4, 2) ON CONFLICT (id) DO NOTHING;
INSERT INTO t VALUES (1, 1, 5), (2, 2, 6), (5, 5, 5) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v RETURNING id, v;
SELECT * FROM t ORDER BY id;

== types of united columns
CREATE TABLE t (i int, n numeric(10, 2), v varchar(5), b bool);
INSERT INTO t VALUES (1, 2.50, 'abc', true);
SELECT i FROM t UNION SELECT 2.5 ORDER BY 1;
SELECT * FROM (SELECT i FROM t UNION ALL SELECT 2.5) q ORDER BY 1; -- refused ORDER BY
SELECT i FROM t UNION ALL SELECT 2.5::float8 ORDER BY 1;
SELECT n FROM t UNION ALL SELECT n FROM t;
SELECT v FROM t UNION ALL SELECT 'longer than that' ORDER BY 1;
SELECT * FROM t;

== string_agg of different values
CREATE TABLE t (i int, s text, f float8);
INSERT INTO t VALUES (1, 'b', 1.5), (1, 'a', 2), (1, 'b', 1.5), (2, NULL, NULL), (2, 'é', 3), (2, 'Z', 4);
SELECT string_agg(DISTINCT s, ',') FROM t;
SELECT string_agg(DISTINCT s, ', ' ORDER BY s DESC) FROM t;
SELECT i, string_agg(DISTINCT s, '-') FROM t GROUP BY i ORDER BY i;
SELECT string_agg(DISTINCT s, ',') FILTER (WHERE i = 1), count(*) FROM t;
SELECT string_agg(DISTINCT f::text, ';') FROM t;
SELECT string_agg(DISTINCT s, s) FROM t;
SELECT string_agg(DISTINCT s, NULL) FROM t;
SELECT string_agg(DISTINCT s, ',') FROM t WHERE false;
SELECT string_agg(DISTINCT s, ',' ORDER BY i) FROM t;
SELECT id FROM t FOR UPDATE LOCKED;
INSERT INTO t (i, g) VALUES (1, DEFAULT);

== a view of the changed table in RETURNING
CREATE TABLE a (id int PRIMARY KEY, y int);
INSERT INTO a VALUES (1, NULL), (2, 5);
CREATE VIEW va AS SELECT id, y FROM a;
UPDATE a SET y = (SELECT max(y) FROM va) WHERE id = 1 RETURNING y;
UPDATE a SET y = 7 RETURNING (SELECT sum(y) FROM va); -- documented queries-in-returning

== numerics of many digits in results that are sorted as a whole
CREATE TABLE n (id int, a numeric);
INSERT INTO n VALUES (1, 2.5), (2, 0.3), (3, 40);
SELECT round(x, 3) FROM (SELECT DISTINCT x FROM (VALUES (1 / 3.0), (2), (0.1)) v(x) ORDER BY x LIMIT 2) q;
SELECT round(x, 3) FROM (SELECT DISTINCT a / 3 AS x FROM n ORDER BY x DESC LIMIT 2) q;
SELECT round(x, 3) FROM (SELECT 2 AS x UNION ALL SELECT a / 3 FROM n ORDER BY x LIMIT 3) q;
SELECT round(x, 3) FROM (SELECT 2 AS x UNION ALL VALUES (1 / 3.0), (7) ORDER BY 1 LIMIT 1) q;
SELECT round(column1, 3) FROM (VALUES (1 / 3.0), (2), (0.1) ORDER BY 1 DESC LIMIT 2) q;
SELECT round(x, 3) FROM ((SELECT a / 3 AS x FROM n) UNION ALL SELECT 5 ORDER BY x LIMIT 2) q;
SELECT id, a FROM (SELECT * FROM n UNION ALL SELECT 9, 1.5 ORDER BY a) q;
SELECT * FROM (SELECT a / 3 AS x FROM n) q UNION ALL SELECT 2 ORDER BY x; -- refused ORDER BY
SELECT *, a / 3 AS x FROM n UNION ALL SELECT 1, 2, 3 ORDER BY x; -- refused ORDER BY

== replacing
CREATE TABLE r (id int, t text, n text);
INSERT INTO r VALUES (1, 'abc', NULL), (2, '', 'x'), (3, NULL, '');
SELECT id, replace(t, n, 'y'), replace(t, '', n), replace(t, 'b', n), replace(t, 'b', ''), replace('aXa', t, 'z') FROM r ORDER BY id;
SELECT replace('abc', $1, $2); -- with ? "", ? "x"
SELECT replace('abcabc', $1, $2); -- with ? "bc", ? "é"

== the first query of pg_dump
SELECT set_config(name, 'view, foreign-table', false) FROM pg_settings WHERE name = 'restrict_nonsystem_relation_kind'; -- refused set_config
SELECT pg_catalog.set_config('search_path', 'public', false);
SELECT 1, set_config('search_path', 'public', false); -- refused set_config

== renamed columns of queries within views
CREATE TABLE ct (a int, b int);
INSERT INTO ct VALUES (1, 2);
CREATE VIEW cw AS WITH x AS (SELECT a FROM ct) SELECT x.a FROM x;
CREATE VIEW cs AS SELECT x.a, x.b FROM (SELECT a, b FROM ct) x;
ALTER TABLE ct RENAME COLUMN a TO aa;
SELECT * FROM cw;
SELECT * FROM cs;
