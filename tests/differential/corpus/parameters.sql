== parameters alone
SELECT $1; -- with ? "x"
SELECT $1::int; -- with ? 5
SELECT $1::int; -- with int4 5
SELECT $1::text; -- with ? "5"
SELECT $1::text || $2::text; -- with ? "a", ? "b"
SELECT $2::text AS b, $1::text AS a; -- with ? "a", ? "b"
SELECT $2::int - $1::int; -- with ? 1, ? 10
SELECT $1::int + $1::int; -- with ? 3
SELECT $1::int + 1; -- with ? 41
SELECT $1 + 1; -- with ? 41
SELECT $1 + 1; -- with int8 41
SELECT 1 + $1; -- with ? 41
SELECT $1 || 'x'; -- with ? "a"
SELECT $1::bool; -- with ? "t"
SELECT $1::bool; -- with bool "f"
SELECT NOT $1; -- with ? "t"
SELECT $1::float8; -- with float8 1.5
SELECT $1::float8 / 2; -- with ? 3
SELECT $1::numeric; -- with numeric "1.50" / documented numeric-scale
SELECT $1::numeric + 1; -- with ? "1.50" / documented numeric-scale
SELECT $1::date; -- with date "2020-02-29"
SELECT $1::date + 1; -- with ? "2020-02-29"
SELECT $1::timestamp; -- with timestamp "2020-02-29 01:02:03.5"
SELECT $1::timestamptz; -- with timestamptz "2020-02-29 01:02:03+02"
SELECT $1::time; -- with time "01:02:03"
SELECT $1::uuid; -- with uuid "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
SELECT $1::bytea; -- with bytea "\\x00ff"
SELECT $1::json; -- with json "{\"a\": 1}"
SELECT $1::jsonb; -- with jsonb "{\"b\":1,\"a\": 2}"
SELECT CAST($1 AS int) * 2; -- with ? 4
SELECT CAST($1 AS varchar(2)); -- with ? "abc"
SELECT $1::int; -- with ? null
SELECT $1::text IS NULL; -- with ? null
SELECT coalesce($1, 'd'); -- with ? null
SELECT coalesce($1::int, 7); -- with ? null
SELECT CASE WHEN $1::int > 5 THEN 'big' ELSE 'small' END; -- with ? 6
SELECT $1 = $2; -- with ? "a", ? "a"
SELECT $1::int = $2::int; -- with ? 1, ? 1
SELECT $1 < $2; -- with int4 9, int4 10
SELECT $1 < $2; -- with text "9", text "10"
SELECT $1 IN (1, 2); -- with ? 2
SELECT length($1); -- with ? "abc"
SELECT upper($1); -- with ? "abc"
SELECT abs($1); -- with int4 -3
SELECT round($1::numeric, 1); -- with ? 1.25
SELECT $1::int4, $2::int8, $3::text; -- with int4 1, int8 2, text "c"
SELECT $3::text, $1::text; -- with ? "a", ? "b", ? "c"
SELECT $2; -- with ? "a", ? "b"
SELECT $1::int; -- with ? "abc"
SELECT $1::int; -- with int4 "abc"
SELECT $1::date; -- with ? "nope"
SELECT $1::int2; -- with ? 40000
SELECT $1::nosuchtype; -- with ? 1
SELECT $1::int / $2::int; -- with ? 7, ? 2
SELECT $1 / $2; -- with int4 7, int4 2
SELECT $1 / $2; -- with numeric 7, numeric 2 / documented numeric-scale
SELECT $1 / $2; -- with float8 7, float8 2
SELECT $1::text LIKE $2; -- with ? "abc", ? "a%"
SELECT (SELECT $1::int) + $2::int; -- with ? 1, ? 2
SELECT * FROM (VALUES ($1::int, $2::text)) v(a, b); -- with ? 1, ? "x"
SELECT x FROM (SELECT $2::int AS x UNION ALL SELECT $1::int) y ORDER BY x; -- with ? 1, ? 2
SELECT 'lit $1 ' || $1::text; -- with ? "p"
SELECT $1::int /* $2 */; -- with ? 1
SELECT "$1" FROM (SELECT 1 AS "$1") x WHERE $1::int = 1; -- with ? 1
SELECT $1::int as a, $1::text as b; -- with ? 1
SELECT $1::int::text; -- with ? 1
SELECT ($1::int + $2::int)::text; -- with ? 1, ? 2
SELECT $1::int AS "x", :y; -- with ? 1

== parameters and columns
CREATE TABLE t (id int PRIMARY KEY, i int, b bigint, f float8, n numeric(10,2), s text, v varchar(20), p bool, d date, m timestamp, z timestamptz, u uuid, y bytea, j json, k jsonb, h smallint);
INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16); -- with ? 1, ? 10, ? 100, ? 1.5, ? "2.50", ? "s", ? "v", ? "t", ? "2020-02-29", ? "2020-02-29 01:02:03", ? "2020-02-29 01:02:03+00", ? "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", ? "\\x00ff", ? "{\"a\": 1}", ? "{\"a\": 1}", ? 7
INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16); -- with int4 2, int4 20, int8 200, float8 2.5, numeric "3.50", text "s2", varchar "v2", bool "f", date "1999-12-31", timestamp "1999-12-31 23:59:59.5", timestamptz "1999-12-31 23:59:59.5+02", uuid "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12", bytea "\\x01", json "[1]", jsonb "[2]", int2 8
INSERT INTO t (id, i) VALUES ($1, $2); -- with ? 3, ? null
INSERT INTO t (id, i) VALUES ($1, $2); -- with ? 4, ? "abc"
INSERT INTO t (id, d) VALUES ($1, $2); -- with ? 5, ? "2020-13-01"
INSERT INTO t (id, d) VALUES ($1, $2); -- with ? 6, ? "2020-1-5"
INSERT INTO t (id, m) VALUES ($1, $2); -- with ? 7, ? "2020-01-05T10:00:00"
INSERT INTO t (id, z) VALUES ($1, $2); -- with ? 8, ? "2020-01-05 10:00:00 +02"
INSERT INTO t (id, d) VALUES ($1, $2); -- with ? 9, date "1970-01-01"
INSERT INTO t (id, i) VALUES ($1::int, $2::int); -- with ? 10, ? 1
INSERT INTO t (i, id) VALUES ($2, $1); -- with ? 11, ? 110
SELECT * FROM t ORDER BY id;
SELECT id FROM t WHERE i = $1; -- with ? 10
SELECT id FROM t WHERE $1 = i; -- with ? 10
SELECT id FROM t WHERE i > $1 AND i < $2 ORDER BY id; -- with ? 5, ? 15
SELECT id FROM t WHERE i BETWEEN $1 AND $2 ORDER BY id; -- with ? 5, ? 15
SELECT id FROM t WHERE i IN ($1, $2) ORDER BY id; -- with ? 10, ? 20
SELECT id FROM t WHERE s = $1; -- with ? "s"
SELECT id FROM t WHERE s = $1; -- with int4 5
SELECT id FROM t WHERE i = $1; -- with text "10"
SELECT id FROM t WHERE i = $1; -- with int8 10
SELECT id FROM t WHERE f = $1; -- with ? 1.5
SELECT id FROM t WHERE n = $1; -- with ? 2.5
SELECT id FROM t WHERE p = $1 ORDER BY id; -- with ? "t"
SELECT id FROM t WHERE d = $1; -- with ? "2020-02-29"
SELECT id FROM t WHERE d = $1; -- with ? "2020-2-29"
SELECT id FROM t WHERE m < $1 AND m IS NOT NULL ORDER BY id; -- with ? "2020-02-29"
SELECT id FROM t WHERE z = $1; -- with ? "2020-02-29 02:02:03+01"
SELECT id FROM t WHERE u = $1; -- with ? "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
SELECT id FROM t WHERE y = $1; -- with ? "\\x00ff"
SELECT id FROM t WHERE lower(s) = $1; -- with ? "s"
SELECT id FROM t WHERE i + 1 = $1; -- with ? 11
SELECT id FROM t WHERE i = $1 + 1; -- with ? 9
SELECT id FROM t WHERE i = $1 OR $1 IS NULL ORDER BY id; -- with ? 10
SELECT id FROM t WHERE ($1::int IS NULL OR i = $1) ORDER BY id; -- with ? 10
SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE i = $1); -- with ? 10
SELECT count(*) FROM t WHERE i >= $1 HAVING count(*) > $2; -- with ? 1, ? 0
SELECT i + $1 FROM t WHERE id = $2; -- with ? 1, ? 1
SELECT id, $2::text FROM t WHERE id = $1; -- with ? 1, ? "x"
SELECT CASE WHEN i = $1 THEN $2 ELSE s END FROM t WHERE id = 1; -- with ? 10, ? "found"
UPDATE t SET i = $2 WHERE id = $1; -- with ? 1, ? 2
UPDATE t SET i = $2::int WHERE id = $1::int; -- with ? 1, ? 2
UPDATE t SET i = i + $1 WHERE id = $2 RETURNING i; -- with ? 5, ? 1
UPDATE t SET s = $1, i = $2 WHERE id = $3 RETURNING s, i; -- with ? "new", ? 3, ? 1
UPDATE t SET s = coalesce($1, s) WHERE id = $2 RETURNING s; -- with ? null, ? 1
SELECT id, i FROM t WHERE id < 4 ORDER BY id;
DELETE FROM t WHERE id = $1; -- with ? 3
DELETE FROM t WHERE id > $1 AND id < $2; -- with int4 6, int4 8
INSERT INTO t (id, i) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET i = excluded.i + $3 RETURNING i; -- with ? 1, ? 5, ? 100
INSERT INTO t (id, i) SELECT $1::int, $2::int RETURNING id, i; -- with ? 30, ? 31
SELECT id FROM t ORDER BY id LIMIT $1; -- with ? "2"
SELECT id FROM t ORDER BY id LIMIT $1 OFFSET $2; -- with int8 1, int8 1

== parameters of another type than the column
CREATE TABLE t (id int PRIMARY KEY, i int, s text, h smallint);
INSERT INTO t (id, i) VALUES ($1, $2); -- with int4 4, text "5" / documented assigned-text
INSERT INTO t (id, s) VALUES ($1, $2); -- with int4 6, int4 5
INSERT INTO t (id, h) VALUES ($1, $2); -- with ? 7, ? 40000 / documented integer-width
