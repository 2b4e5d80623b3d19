== aggregates
CREATE TABLE a (id int PRIMARY KEY, g text, i int, b bigint, s smallint, f float8, n numeric, t text);
INSERT INTO a VALUES (1, 'x', 1, 10, 1, 1.5, 1.50, 'b'), (2, 'x', 2, 20, 2, 2.5, 2.25, 'a'), (3, 'y', 4, 40, 3, NULL, 3, 'c'), (4, NULL, NULL, NULL, NULL, 4, NULL, NULL);
SELECT count(*), count(i), count(DISTINCT g) FROM a;
SELECT sum(i), sum(b), sum(s), sum(f), sum(n) FROM a; -- documented aggregates-of-integers
SELECT avg(i), avg(f), avg(n) FROM a; -- documented aggregates-of-integers
SELECT avg(b) FROM a; -- documented aggregates-of-integers
SELECT min(i), max(t), min(f), max(n) FROM a;
SELECT sum(i), count(*), avg(i), max(i) FROM a WHERE false;
SELECT sum(i) FROM a WHERE i IS NULL;
SELECT sum(DISTINCT i), avg(DISTINCT i) FROM a; -- documented aggregates-of-integers
SELECT string_agg(t, ',' ORDER BY t) FROM a;
SELECT string_agg(t, ',' ORDER BY id DESC) FROM a;
SELECT string_agg(DISTINCT g, ',') FROM a;
SELECT string_agg(t, NULL) FROM a;
SELECT array_agg(i ORDER BY i) FROM a; -- refused array_agg
SELECT g, count(*) FROM a GROUP BY g ORDER BY g;
SELECT g, sum(i) FROM a GROUP BY g ORDER BY g NULLS FIRST;
SELECT g, sum(i) FROM a GROUP BY 1 ORDER BY 2;
SELECT g AS h, count(*) FROM a GROUP BY h ORDER BY h;
SELECT upper(g), count(*) FROM a GROUP BY upper(g) ORDER BY 1;
SELECT g, i FROM a GROUP BY g;
SELECT g, i, count(*) FROM a;
SELECT i, max(b) FROM a;
SELECT * FROM a GROUP BY g;
SELECT id, g FROM a GROUP BY id ORDER BY id;
SELECT g FROM a GROUP BY g HAVING count(*) > 1;
SELECT g FROM a GROUP BY g HAVING sum(i) > 3 ORDER BY g;
SELECT count(*) FROM a HAVING count(*) > 10;
SELECT g, count(*) FROM a HAVING count(*) > 1;
SELECT g FROM a WHERE count(*) > 1 GROUP BY g;
SELECT sum(count(*)) FROM a GROUP BY g;
SELECT count(*) FILTER (WHERE i > 1) FROM a;
SELECT sum(i) FILTER (WHERE g = 'x') FROM a;
SELECT g FROM a GROUP BY g ORDER BY count(*) DESC, g;
SELECT g, count(*) AS c FROM a GROUP BY g HAVING c > 1;
SELECT count(DISTINCT (g, i)) FROM a; -- documented rows-as-values
SELECT count(i, g) FROM a;
SELECT count() FROM a; -- documented sqlite-syntax
SELECT max(1, 2); -- documented sqlite-functions
SELECT min(i, b) FROM a; -- documented sqlite-functions
SELECT total(i) FROM a; -- documented sqlite-functions
SELECT group_concat(t) FROM a; -- documented sqlite-functions
SELECT stddev(i) FROM a; -- refused stddev
SELECT variance(i) FROM a; -- refused variance
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FROM a; -- refused percentile_cont
SELECT bit_and(i), bit_or(i) FROM a; -- refused bit_and
SELECT g, count(*) FROM a GROUP BY ROLLUP (g); -- refused ROLLUP
SELECT g, count(*) FROM a GROUP BY GROUPING SETS ((g), ()); -- refused SETS
SELECT sum(i) + 1, sum(i) / count(*), avg(i)::int FROM a;
SELECT sum(i * 1.5) FROM a;
SELECT sum(t) FROM a;
SELECT avg(g) FROM a;
SELECT max(g) || 'x' FROM a;
SELECT DISTINCT g FROM a ORDER BY g;
SELECT DISTINCT ON (g) g, i FROM a ORDER BY g, i DESC; -- refused SELECT DISTINCT ON
SELECT DISTINCT g FROM a ORDER BY i;
SELECT DISTINCT i % 2 FROM a ORDER BY 1;
SELECT count(*) AS n FROM a WHERE n > 1;
SELECT i AS k FROM a WHERE k > 1;
SELECT i AS k FROM a ORDER BY k;
SELECT i AS k FROM a ORDER BY k + 1;

== order, limit, offset
CREATE TABLE o (id int PRIMARY KEY, v int, t text);
INSERT INTO o VALUES (1, 3, 'c'), (2, NULL, 'a'), (3, 1, NULL), (4, 2, 'b');
SELECT id FROM o ORDER BY v;
SELECT id FROM o ORDER BY v DESC;
SELECT id FROM o ORDER BY v NULLS FIRST;
SELECT id FROM o ORDER BY v DESC NULLS LAST;
SELECT id FROM o ORDER BY t;
SELECT id FROM o ORDER BY t DESC;
SELECT id FROM o ORDER BY 1 DESC;
SELECT id, v FROM o ORDER BY 3;
SELECT id FROM o ORDER BY -id;
SELECT id FROM o ORDER BY v IS NULL, v;
SELECT id FROM o ORDER BY v, t LIMIT 2;
SELECT id FROM o ORDER BY id LIMIT 2 OFFSET 1;
SELECT id FROM o ORDER BY id OFFSET 2;
SELECT id FROM o ORDER BY id OFFSET 1 LIMIT 1;
SELECT id FROM o ORDER BY id LIMIT ALL;
SELECT id FROM o ORDER BY id LIMIT NULL;
SELECT id FROM o ORDER BY id LIMIT 0;
SELECT id FROM o ORDER BY id LIMIT -1;
SELECT id FROM o ORDER BY id OFFSET -1;
SELECT id FROM o ORDER BY id LIMIT '2';
SELECT id FROM o ORDER BY id LIMIT 'x';
SELECT id FROM o ORDER BY id LIMIT 1.6; -- documented limits
SELECT id FROM o ORDER BY id LIMIT 1, 2; -- documented sqlite-syntax
SELECT id FROM o ORDER BY id LIMIT 1 + 1;
SELECT id FROM o ORDER BY id FETCH FIRST 2 ROWS ONLY;
SELECT id FROM o ORDER BY id OFFSET 1 ROW FETCH NEXT ROW ONLY;
SELECT id FROM o ORDER BY id LIMIT $1 OFFSET $2; -- with ? 2, ? 1
SELECT id FROM o ORDER BY id LIMIT $1; -- with int4 2
SELECT id FROM o ORDER BY id LIMIT $1; -- with ? null
SELECT id FROM o ORDER BY 'x';
SELECT id FROM o ORDER BY nosuch;
SELECT id FROM o ORDER BY v COLLATE "C"; -- documented collations
SELECT id FROM o ORDER BY v USING <; -- refused USING
SELECT max(v) FROM o ORDER BY id;

== window functions
CREATE TABLE w (id int PRIMARY KEY, g text, v int);
INSERT INTO w VALUES (1, 'a', 10), (2, 'a', 20), (3, 'a', 20), (4, 'b', 5), (5, 'b', NULL);
SELECT id, row_number() OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, rank() OVER (PARTITION BY g ORDER BY v), dense_rank() OVER (PARTITION BY g ORDER BY v) FROM w ORDER BY id;
SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id) FROM w ORDER BY id;
SELECT id, sum(v) OVER () FROM w ORDER BY id;
SELECT id, avg(v) OVER (PARTITION BY g) FROM w ORDER BY id; -- documented aggregates-of-integers
SELECT id, count(*) OVER (ORDER BY v) FROM w ORDER BY id;
SELECT id, lag(v) OVER (ORDER BY id), lead(v, 1, 0) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, first_value(v) OVER x, last_value(v) OVER x FROM w WINDOW x AS (PARTITION BY g ORDER BY id) ORDER BY id;
SELECT id, sum(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM w ORDER BY id;
SELECT id, sum(v) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM w ORDER BY id;
SELECT id, ntile(2) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, nth_value(v, 2) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id FROM w WHERE row_number() OVER () = 1; -- documented sqlstates
SELECT id, rank() OVER (ORDER BY v) FROM w ORDER BY id;
SELECT g, sum(sum(v)) OVER (ORDER BY g) FROM w GROUP BY g ORDER BY g; -- documented aggregates-of-integers
SELECT id, sum(v) FILTER (WHERE v > 5) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT id, min(v) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM w ORDER BY id;
SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY v DESC NULLS LAST) AS n FROM w) x WHERE n = 1 ORDER BY id;

== set operations
SELECT 1 UNION SELECT 1;
SELECT 1 UNION ALL SELECT 1;
SELECT 1 AS a UNION SELECT 2 ORDER BY a DESC;
SELECT 1 INTERSECT SELECT 1;
SELECT 1 EXCEPT SELECT 1;
SELECT 1, 2 UNION SELECT 1;
SELECT 'a' UNION SELECT 'b' ORDER BY 1;
SELECT 1 UNION SELECT NULL ORDER BY 1;
SELECT NULL UNION SELECT NULL;
(SELECT 1) UNION (SELECT 2) ORDER BY 1;
(SELECT 1 AS a ORDER BY a LIMIT 1) UNION ALL (SELECT 2);
SELECT 1 UNION SELECT 2 UNION ALL SELECT 2 ORDER BY 1;
SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 2;
SELECT 1 EXCEPT ALL SELECT 1; -- refused ALL
SELECT 1 INTERSECT ALL SELECT 1; -- refused ALL
SELECT 1 AS a UNION SELECT 2 ORDER BY nosuch;
SELECT 1 AS a UNION SELECT 2 LIMIT 1 OFFSET 5;
SELECT 1.0 UNION SELECT 1; -- documented numeric-scale
SELECT '1' UNION SELECT 1;

== subqueries
CREATE TABLE p (id int PRIMARY KEY, n text);
CREATE TABLE q (id int PRIMARY KEY, p int, v int);
INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO q VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, NULL, 40);
SELECT n, (SELECT sum(v) FROM q WHERE q.p = p.id) AS s FROM p ORDER BY n;
SELECT n FROM p WHERE id IN (SELECT p FROM q) ORDER BY n;
SELECT n FROM p WHERE id NOT IN (SELECT p FROM q) ORDER BY n;
SELECT n FROM p WHERE id NOT IN (SELECT p FROM q WHERE p IS NOT NULL) ORDER BY n;
SELECT n FROM p WHERE EXISTS (SELECT 1 FROM q WHERE q.p = p.id) ORDER BY n;
SELECT n, EXISTS (SELECT 1 FROM q WHERE q.p = p.id) AS has FROM p ORDER BY n;
SELECT n FROM p WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.p = p.id);
SELECT (SELECT v FROM q);
SELECT (SELECT v FROM q ORDER BY v LIMIT 1);
SELECT (SELECT v FROM q WHERE false);
SELECT (SELECT id, v FROM q LIMIT 1);
SELECT n FROM p WHERE id = (SELECT p FROM q WHERE v = 30);
SELECT n FROM p WHERE id = (SELECT p FROM q);
SELECT n FROM p WHERE id = ANY (SELECT p FROM q) ORDER BY n;
SELECT n FROM p WHERE id > ALL (SELECT p FROM q WHERE p IS NOT NULL); -- refused ALL
SELECT n FROM p WHERE (id, n) IN (SELECT 1, 'a');
SELECT n FROM p WHERE (id, n) = (1, 'a');
SELECT n FROM p WHERE (id, n) < (2, 'a') ORDER BY n;
SELECT x.s FROM (SELECT p, sum(v) AS s FROM q GROUP BY p) x WHERE x.p = 1;
SELECT s FROM (SELECT sum(v) AS s FROM q); -- documented subquery-alias
SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS v(a, b) ORDER BY a;
SELECT * FROM (VALUES (1, 'x')) AS v;
SELECT * FROM p, LATERAL (SELECT v FROM q WHERE q.p = p.id ORDER BY v LIMIT 1) l ORDER BY id; -- refused LATERAL
SELECT count(*) FROM (SELECT DISTINCT p FROM q) x;
SELECT nosuch FROM p;
SELECT p.nosuch FROM p;
SELECT * FROM nosuch;
SELECT x.id FROM p;
SELECT id FROM p, q;
SELECT ROW(1, 'a'); -- documented rows-as-values
SELECT (1, 2) = (1, 2);
SELECT p FROM p WHERE id = 1; -- documented rows-as-values
SELECT p.* FROM p WHERE id = 1;
SELECT ctid FROM p; -- documented row-identifiers
SELECT rowid FROM p; -- documented row-identifiers
SELECT oid FROM p; -- documented row-identifiers
SELECT generate_series(1, 3); -- refused generate_series
SELECT * FROM generate_series(1, 3);
SELECT * FROM generate_series(1, 5, 2) AS g(n);
SELECT id FROM p WHERE id = 1 FOR UPDATE;
SELECT id FROM p TABLESAMPLE SYSTEM (100); -- refused SYSTEM
SELECT id FROM ONLY p ORDER BY id;
TABLE p; -- refused TABLE

== common table expressions
WITH x AS (SELECT 1 AS a) SELECT a FROM x;
WITH x(a, b) AS (SELECT 1, 2) SELECT a + b FROM x;
WITH x AS (SELECT 1 AS a), y AS (SELECT a + 1 AS b FROM x) SELECT a, b FROM x, y;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r ORDER BY n;
WITH RECURSIVE r(n) AS (VALUES (1) UNION SELECT (n + 1) % 3 FROM r) SELECT n FROM r ORDER BY n;
WITH RECURSIVE r AS (SELECT 1 AS n, 'a' AS t UNION ALL SELECT n + 1, t || 'b' FROM r WHERE n < 3) SELECT n, t FROM r ORDER BY n;
CREATE TABLE e (id int PRIMARY KEY, boss int, name text);
INSERT INTO e VALUES (1, NULL, 'root'), (2, 1, 'a'), (3, 1, 'b'), (4, 2, 'c');
WITH RECURSIVE t AS (SELECT id, name, 0 AS depth FROM e WHERE boss IS NULL UNION ALL SELECT e.id, e.name, depth + 1 FROM e JOIN t ON e.boss = t.id) SELECT * FROM t ORDER BY id;
WITH s AS (SELECT 6 AS id, 1 AS boss, 'f' AS name) INSERT INTO e SELECT * FROM s RETURNING id;
WITH s AS (SELECT 6 AS id) DELETE FROM e WHERE id IN (SELECT id FROM s);
WITH s AS (SELECT 2 AS id) UPDATE e SET name = 'two' FROM s WHERE e.id = s.id RETURNING e.id, name;
WITH x AS MATERIALIZED (SELECT 1 AS a) SELECT * FROM x;
WITH x AS (SELECT 1) SELECT * FROM nosuch;
SELECT id, name FROM e ORDER BY id;

== changes in common table expressions
CREATE TABLE e (id int PRIMARY KEY, boss int, name text);
INSERT INTO e VALUES (4, 2, 'c');
WITH n AS (INSERT INTO e VALUES (5, 1, 'd') RETURNING id) SELECT id FROM n; -- refused INSERT
WITH d AS (DELETE FROM e WHERE id = 5 RETURNING *) SELECT count(*) FROM d; -- refused DELETE
WITH u AS (UPDATE e SET name = 'z' WHERE id = 4 RETURNING *) SELECT name FROM u; -- refused UPDATE

== joins
CREATE TABLE l (id int, a text);
CREATE TABLE r (id int, b text);
INSERT INTO l VALUES (1, 'l1'), (2, 'l2'), (NULL, 'ln');
INSERT INTO r VALUES (2, 'r2'), (3, 'r3'), (NULL, 'rn');
SELECT a, b FROM l JOIN r ON l.id = r.id;
SELECT a, b FROM l LEFT JOIN r ON l.id = r.id ORDER BY a;
SELECT a, b FROM l RIGHT JOIN r ON l.id = r.id ORDER BY b;
SELECT a, b FROM l FULL JOIN r ON l.id = r.id ORDER BY a, b;
SELECT * FROM l NATURAL JOIN r;
SELECT * FROM l JOIN r USING (id);
SELECT * FROM l FULL JOIN r USING (id) ORDER BY a, b;
SELECT id FROM l FULL JOIN r USING (id) ORDER BY id;
SELECT l.id, r.id FROM l LEFT JOIN r USING (id) ORDER BY a;
SELECT count(*) FROM l CROSS JOIN r;
SELECT count(*) FROM l, r WHERE l.id = r.id;
SELECT * FROM l JOIN r ON l.id = r.id;
SELECT id FROM l JOIN r ON l.id = r.id;
SELECT a FROM l JOIN r;
SELECT x.a, y.a FROM l x JOIN l y ON x.id < y.id;
SELECT a, b FROM l LEFT JOIN r ON l.id = r.id WHERE b IS NULL ORDER BY a;
SELECT a, b FROM l LEFT JOIN r ON l.id = r.id AND b = 'zz' ORDER BY a;
SELECT a FROM l JOIN r ON true ORDER BY a;
SELECT a FROM l JOIN r ON 1 ORDER BY a; -- documented booleans-and-numbers
SELECT a FROM l INNER JOIN r USING (nosuch);
SELECT a, b, c.id FROM l JOIN r ON l.id = r.id LEFT JOIN l c ON c.id = r.id;
SELECT * FROM l AS x(k, v) ORDER BY v; -- refused names for the columns of a table

== names of columns
CREATE TABLE n (id int, "Upper" int, val text);
INSERT INTO n VALUES (1, 2, 'x');
SELECT ID, Val FROM n;
SELECT "Upper" FROM n;
SELECT Upper FROM n; -- documented case-of-names
SELECT upper(val), count(*), 1 + 1 FROM n GROUP BY val;
SELECT id::text FROM n;
SELECT '5'::int;
SELECT CAST(id AS text) FROM n;
SELECT CASE WHEN id = 1 THEN 1 END FROM n;
SELECT coalesce(id, 1), nullif(id, 1), greatest(id, 2) FROM n;
SELECT EXISTS (SELECT 1), NOT true, -id, id = 1 FROM n;
SELECT (SELECT max(id) FROM n), (SELECT 1 AS a);
SELECT n.id FROM n;
SELECT id AS "a b", id AS Xy FROM n;
SELECT now() IS NULL, current_date IS NULL;
SELECT true, 'a', 1, NULL;
SELECT id + 1 AS "id + 1" FROM n;
SELECT * FROM (SELECT 1, 2) x;

== operators that do not stand side by side
SELECT 1 < 2 = true;
SELECT 1 = 1 = true;
SELECT (1 < 2) = true, true = (1 < 2);
SELECT 1 <> 2 >= 3;
SELECT 1 < 2 IS NULL, 1 IS NULL = false, NOT 1 < 2 AND 2 < 3;
SELECT 1 IS NULL IS NULL, 1 IN (1) IN (true);
SELECT 1 IS DISTINCT FROM 2 IS DISTINCT FROM true;
SELECT 1 IS DISTINCT FROM 2 IS NULL;
SELECT 'a' LIKE 'b' LIKE 'c';
SELECT 1 BETWEEN 1 AND 2 BETWEEN true AND true;
SELECT 1 BETWEEN 1 AND 2 IN (true);
SELECT 'a' LIKE 'b' = false, 1 BETWEEN 0 AND 2 = true;
SELECT 1 + 2 = 3 AND 3 = 1 + 2;
SELECT 5 IN ();
SELECT 5 NOT IN ();
SELECT id FROM p WHERE id IN ();

== tables that do not exist come first
UPDATE nosuch SET v = 1 WHERE rowid = 'b';
SELECT 'x'::int FROM nosuch;
SELECT 1 + true FROM nosuch;
DELETE FROM nosuch WHERE 1 = 'x';
WITH nosuch AS (SELECT 1 AS a) SELECT 'x'::int FROM nosuch;
WITH x AS (SELECT 1 AS a) SELECT 'x'::int FROM x, nosuch;

== MERGE and TABLE
CREATE TABLE m (id int PRIMARY KEY, v int);
MERGE INTO m USING (VALUES (1, 2)) s(a, b) ON m.id = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b); -- refused MERGE
WITH s AS (SELECT 1 AS a) MERGE INTO m USING s ON m.id = s.a WHEN MATCHED THEN DELETE; -- refused MERGE
EXPLAIN MERGE INTO m USING m s ON m.id = s.id WHEN MATCHED THEN DELETE; -- refused MERGE
TABLE m; -- refused TABLE
(TABLE m); -- refused TABLE
SELECT 1, 2 UNION ALL TABLE m; -- refused TABLE
WITH x AS (TABLE m) SELECT * FROM x; -- refused TABLE
INSERT INTO m TABLE m; -- refused TABLE
CREATE TABLE m1 (a int);
SELECT (TABLE m1); -- refused TABLE
SELECT 1 IN (TABLE m1); -- refused TABLE
SELECT * FROM (TABLE m) x; -- refused TABLE
CREATE VIEW mv AS TABLE m; -- refused TABLE
CREATE TABLE mt AS TABLE m; -- refused TABLE
INSERT INTO m VALUES (1, 2);
ALTER TABLE m ADD COLUMN g int GENERATED ALWAYS AS (v + 1) STORED; -- refused STORED
ALTER TABLE m ADD COLUMN u int UNIQUE; -- refused UNIQUE
ALTER TABLE m ADD COLUMN k int PRIMARY KEY;
CREATE VIEW w AS SELECT id FROM m;
ALTER TABLE w ADD COLUMN u int;

== results without a name, and columns of queries around
CREATE TABLE w (k int, upper text, max int, count int);
CREATE TABLE u (v int, s text);
INSERT INTO w VALUES (1, 'x', 100, 1);
INSERT INTO u VALUES (1, 'x'), (2, 'y');
SELECT "max" FROM (SELECT max(v) FROM u) q;
SELECT q.max, q.count FROM (SELECT max(v), count(*) FROM u) q;
WITH q AS (SELECT upper(s) FROM u) SELECT "upper" FROM q ORDER BY 1;
SELECT (SELECT count(*) FROM (SELECT upper(s) FROM u WHERE s <> upper) q) FROM w;
SELECT k FROM w WHERE EXISTS (SELECT 1 FROM (SELECT count(*) FROM u HAVING count(*) > count) q);
SELECT k, (SELECT count(*) FROM (SELECT max(v) FROM u WHERE u.v < max) q) FROM w;
SELECT k FROM w WHERE EXISTS (WITH q AS (SELECT max(v) FROM u WHERE u.v < max) SELECT 1 FROM q);
SELECT * FROM (SELECT upper(s) FROM u WHERE upper = 'X') q;
WITH q AS (SELECT lower(u.s) FROM u JOIN w ON lower = 'x') SELECT * FROM q;
SELECT * FROM (SELECT v::text FROM u ORDER BY v LIMIT 1) q;
