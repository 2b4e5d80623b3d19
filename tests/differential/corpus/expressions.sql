== values written into text
CREATE TABLE w (id int PRIMARY KEY, p bool, f float8, r numeric(6,2), d date, h time, m timestamp, z timestamptz, y bytea, u uuid, t text);
INSERT INTO w VALUES (1, false, 1e20, 1.5, '2020-01-02', '23:59:59.5', '2020-01-02 03:04:05.5', '2020-01-02 03:04:05.25+00', '\x00ff', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'x'), (2, true, -0.5, 0, '0001-01-01', '00:00', '2020-01-02', '2020-01-02+00', '\x', '00000000-0000-0000-0000-000000000000', ''), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT t || p, t || f, t || d, t || h, t || m, t || z, t || u FROM w ORDER BY id;
SELECT t || y, y || t, y || '\x01', y || y FROM w ORDER BY id;
SELECT concat(p, f, d, h, m, z, u, y, t) FROM w ORDER BY id;
SELECT concat_ws('/', p, f, d, h, m, z, u, y, t) FROM w ORDER BY id;
SELECT format('%s %s %s %s %s %s %s %s', p, f, d, h, m, z, u, y) FROM w ORDER BY id;
SELECT p::text, f::text, d::text, h::text, m::text, z::text, y::text FROM w ORDER BY id;
SELECT r::text, r::varchar, r || 'x', concat(r), format('%s', r), (r + 1)::text, (r * 2)::text, abs(r)::text FROM w ORDER BY id;
SELECT 2.5::numeric(10,2)::text, 1.50::text, (1.50 + 1)::text, (-1.50)::text, (1.5 * 1.50)::text;
SELECT string_agg(r::text, ',' ORDER BY id), string_agg(h::text, ',' ORDER BY id), string_agg(t || z, ',' ORDER BY id) FROM w;
SELECT left(m::text, 22), length(h::text), upper(t || h) FROM w ORDER BY id;
SELECT case when p then m::text else t || m end FROM w ORDER BY id;
SELECT $1 || t FROM w ORDER BY id; -- with timestamp "2020-01-02 03:04:05.5"
SELECT concat($1::time, '/', $2::bytea); -- with time "03:04:05.5", bytea "\\x00ff"

== casts that PostgreSQL does not have
CREATE TABLE w (id int PRIMARY KEY, b bigint, f float8, n numeric, d date, h time, m timestamp, z timestamptz, u uuid, y bytea, p bool);
INSERT INTO w VALUES (1, 1, 1, 1, '2020-01-02', '03:04', '2020-01-02', '2020-01-02+00', '00000000-0000-0000-0000-000000000000', '\x31', true);
SELECT f::bool FROM w;
SELECT n::bool FROM w;
SELECT d::time FROM w;
SELECT d::int FROM w;
SELECT h::timestamp FROM w;
SELECT h::date FROM w;
SELECT id::date FROM w;
SELECT id::timestamp FROM w;
SELECT id::uuid FROM w;
SELECT u::int FROM w;
SELECT u::bytea FROM w;
SELECT y::int FROM w;
SELECT y::uuid FROM w;
SELECT p::float8 FROM w;
SELECT p::date FROM w;
SELECT p::numeric FROM w;
SELECT m::int FROM w;
SELECT z::float8 FROM w;
SELECT id::json FROM w;
SELECT nullif(d, '2020-01-02')::time FROM w;
SELECT id::bool, p::int, d::timestamp, m::time, z::date, h::text, u::varchar, y::text FROM w;
SELECT b::bool FROM w; -- documented booleans-and-numbers

== constants within a cast are text
SELECT nullif('1', '01')::int;
SELECT greatest('10', '9')::int;
SELECT least('10', '9')::int8;
SELECT coalesce('1', 'x')::int;
SELECT (CASE WHEN true THEN '1' ELSE 'x' END)::int;
SELECT nullif('2020-1-1', '2020-01-01')::date;
SELECT nullif($1, '01')::int; -- with ? "1"
SELECT greatest($1, $2)::int; -- with ? "10", ? "9"

== operators of integers
SELECT 1.5 & 1;
SELECT 1.5::float8 | 1;
SELECT ~ 1.5;
SELECT 2.0 << 1;
SELECT to_hex(1.5);
SELECT to_hex(255), to_hex(3000000000);
SELECT 5::int8 & 3, 5::int8 << 3;

== types of divisions
SELECT div(7, 2) / 2 > 1;
SELECT div(7.5, 2) / 2 > 1;
SELECT div(-7, 2), div(7.5, 2), div(1, 0);
SELECT sign(5) / 2, sign(-2.5) / 2 < -0.4, sign(0), sign(-3::float8), sign(NULL::int);
SELECT round($1, 1); -- with ? "2.25"
SELECT trunc($1, 1); -- with ? "2.25"
SELECT round(2.5::float8, 1); -- documented arguments-of-any-type
SELECT nullif(timestamp '2020-01-01', timestamptz '2020-01-02'); -- refused nullif
SELECT nullif(date '2020-01-01', timestamp '2020-01-01 00:00'); -- refused nullif
SELECT nullif(date '2020-01-01', timestamp '2020-01-02'); -- refused nullif

== substring of a pattern
SELECT substring('12abc' from '2'); -- refused substring
SELECT substring('12abc', '2'); -- refused substring
SELECT substring('abc' from 'b.'); -- refused substring
SELECT substring('a1b' from $1); -- with ? "1" / refused substring
SELECT substring('a1b' from $1); -- with int4 2
SELECT substring('a1b' from $1::int for $2::int); -- with ? "2", ? "1"
SELECT substr('a1b', $1); -- with ? "2"

== integers that overflow within an expression
CREATE TABLE w (id int PRIMARY KEY, b bigint);
INSERT INTO w VALUES (1, 9223372036854775807), (2, 5);
SELECT (b + 10) - 9223372036854775800 FROM w WHERE id = 1;
SELECT (b + 10) - b FROM w WHERE id = 1;
SELECT (b * 2) / 4 FROM w WHERE id = 1;
SELECT (b * 2) % 7 FROM w WHERE id = 1;
SELECT (b + 1)::text FROM w WHERE id = 1;
SELECT (b + 1) || '' FROM w WHERE id = 1;
SELECT 'x' || (b + 1) FROM w WHERE id = 1;
SELECT (b + 1)::float8 FROM w WHERE id = 1;
SELECT (b + 1)::numeric FROM w WHERE id = 1;
SELECT (b + 1) * 1.5 FROM w WHERE id = 1;
SELECT abs(b * 2) / 3 FROM w WHERE id = 1;
SELECT -(-b - 2) FROM w WHERE id = 1;
SELECT coalesce(b + 1, 0) - 5 FROM w WHERE id = 1;
SELECT CASE WHEN b > 0 THEN b + 1 END - b FROM w WHERE id = 1;
SELECT x - 9223372036854775800 FROM (SELECT b + 10 AS x FROM w WHERE id = 1) s;
SELECT sum(b + 1) FROM w;
SELECT count(*) FROM w WHERE abs(b - 1 + 2) > 0;
SELECT greatest(b + 1, 3) FROM w WHERE id = 1;
SELECT round(b + 1) FROM w WHERE id = 1;
SELECT md5((b + 1)::text) FROM w WHERE id = 1;
SELECT (b + 1) & 7 FROM w WHERE id = 1;
SELECT (b - 1) + 1, (b - 1) - 1, b / 2 + b / 3 FROM w ORDER BY id;
SELECT b + $1 - $1 FROM w WHERE id = 1; -- with int8 1
INSERT INTO w SELECT 3, b + 1 FROM w WHERE id = 1;
UPDATE w SET b = b + 1 WHERE id = 1;
SELECT id FROM w WHERE b + 1 > 0 ORDER BY id; -- documented integer-overflow

== floats that overflow
CREATE TABLE w (id int PRIMARY KEY, f float8, g float8);
INSERT INTO w VALUES (1, 1e308, 1e-308), (2, 2, 4), (3, 'Infinity', 1), (4, NULL, 1), (5, 0, 0);
SELECT 1e308::float8 * 10;
SELECT f * 10 FROM w WHERE id = 1;
SELECT f + f FROM w WHERE id = 1;
SELECT -f - f FROM w WHERE id = 1;
SELECT f / g FROM w WHERE id = 1;
SELECT g * g FROM w WHERE id = 1;
SELECT g / f FROM w WHERE id = 1;
SELECT (f * 2)::text FROM w WHERE id = 1;
SELECT f * 10, f + g, f - g, f / 3, f * g FROM w WHERE id IN (2, 4) ORDER BY id;
SELECT f * 10, f + 1, f - 1, -f, f / 2, g / f FROM w WHERE id = 3;
SELECT f * g, g * f, f + g, f - g FROM w WHERE id = 5;
SELECT f / g FROM w WHERE id = 5;
SELECT (f + 1) * (g + 2) / (f + 3) FROM w WHERE id = 2;
SELECT f - f FROM w WHERE id = 3; -- refused NaN
SELECT f * 0 FROM w WHERE id = 3; -- refused NaN
UPDATE w SET f = f * 10 WHERE id = 1;
INSERT INTO w SELECT 9, f * 10, 1 FROM w WHERE id = 1;
SELECT count(*) FROM w WHERE f * 10 > 1;

== sums and averages of what is no number
CREATE TABLE w (id int, t text, v varchar(5), p bool, d date, u uuid, y bytea);
SELECT sum(t) FROM w;
SELECT sum(v) FROM w;
SELECT sum(p) FROM w;
SELECT sum(d) FROM w;
SELECT sum(u) FROM w;
SELECT sum(y) FROM w;
SELECT avg(t) FROM w;
SELECT avg(p) FROM w;
SELECT avg(d) FROM w;
SELECT avg(u) FROM w;
SELECT sum(t::int), avg(t::float8) FROM w;
SELECT sum(t) OVER () FROM w;
SELECT abs(t) FROM w;
SELECT round(t) FROM w;
SELECT sqrt(t) FROM w;
SELECT ceil(t), floor(t) FROM w;
SELECT power(t, 2) FROM w;

== names of the session
SELECT current_user = 'tester', session_user = 'tester', user = 'tester', current_role = 'tester';
SELECT current_schema, current_schema();
SELECT current_user, session_user, user, current_role;
SELECT current_catalog = current_database();
SELECT upper(current_user), current_user || '@', length(session_user);
CREATE TABLE w (id int, who text);
INSERT INTO w VALUES (1, current_user), (2, user);
SELECT id FROM w WHERE who = current_user ORDER BY id;

== char with a length
SELECT 'ab'::char(5) = 'ab', 'ab'::char(5) = 'ab  '::char(4), 'ab'::char(5) < 'abc';
SELECT length('ab'::char(5)), char_length('ab'::char(5)), 'ab'::char(5) || 'x', 'ab  '::char(5)::text || '|', 'ab '::char(5)::varchar || '|';
SELECT 'abc'::char(2), 'abc'::char, CAST('abcdef' AS character(3));
SELECT upper('ab'::char(5)) || '|', 'ab'::char(5) IN ('ab', 'c'), 'ab'::char(5) LIKE 'ab'; -- documented char-padding
SELECT 'ab'::char(5); -- documented char-padding

== values of two types of numbers
CREATE TABLE w (id int PRIMARY KEY, i int, f float8, n numeric(8,2));
INSERT INTO w VALUES (1, 1, NULL, 3), (2, 7, 2.5, 1.25);
SELECT coalesce(f, 1) / 2, coalesce(f, i) / 2, coalesce(f, n) / 2 FROM w ORDER BY id;
SELECT CASE WHEN f IS NULL THEN i ELSE f END / 2, greatest(i, 0.5::float8) / 2, least(f, i) / 2, nullif(i, 2.5::float8) / 2 FROM w ORDER BY id;
SELECT x / 2 FROM (SELECT f AS x FROM w UNION ALL SELECT i FROM w UNION ALL SELECT 3 UNION ALL SELECT 2.5::float8) s ORDER BY 1;
SELECT x / 2 FROM (SELECT 1 AS x UNION ALL SELECT 3 UNION ALL SELECT 2.5::float8) s ORDER BY 1;
SELECT x / 2 FROM (VALUES (1), (3), (2.5::float8)) s(x) ORDER BY 1;
SELECT x / 2 FROM (VALUES (1) UNION ALL SELECT 2.5::float8) s(x) ORDER BY 1;
SELECT date_part('year', date '2021-01-01') / 2, date_part('second', timestamp '2021-01-01 00:00:03') / 2;
SELECT coalesce(f, 1) % 2::numeric > 0 FROM w WHERE f IS NULL; -- documented operators-of-any-type
SELECT ceil(i) / 2, abs(f) / 2, coalesce(f, 0)::text, coalesce(f, 3) || '' FROM w ORDER BY id;
SELECT (SELECT max(x) FROM (VALUES (3::float8), (5)) v(x)) / 2;

== numerics of many digits are in order
CREATE TABLE w (id int PRIMARY KEY, i int, n numeric(10,2));
INSERT INTO w VALUES (1, 1, 1), (2, 3, 10), (3, 2, 7), (4, 6, 2.5), (5, NULL, NULL);
SELECT 1 / 3.0 > 1, 1 / 3.0 < 0.5, 0.12345678901234567890 > 1, -(1 / 3.0) < 0, abs(-1 / 3.0) > 5, 1 / 3.0 = 1 / 3.0, 1 / 3.0 <> 2 / 3.0;
SELECT 1 / 3.0 BETWEEN 0 AND 1, 1 / 3.0 NOT BETWEEN 0 AND 1, 1 / 3.0 IN (0.5, 1 / 3.0), 1 / 3.0 IS DISTINCT FROM 1 / 3.0;
SELECT 12345678901234567890 > 12345678901234567889, 12345678901234567890 = 12345678901234567891, 12345678901234567890 > 5;
SELECT id FROM w WHERE i / 3.0 > 0.5 ORDER BY id;
SELECT id FROM w WHERE n / 3 > 1 ORDER BY id;
SELECT id FROM w WHERE n / 3 > i / 7.0 ORDER BY id;
SELECT id FROM w WHERE n / 3 BETWEEN 1 AND 3 ORDER BY id;
SELECT id FROM w WHERE CASE WHEN i > 0 THEN n / 3 ELSE 0 END >= 1 ORDER BY id;
SELECT id FROM w ORDER BY i / 3.0, id;
SELECT id, i / 3.0 AS x FROM w ORDER BY x DESC; -- documented numeric-scale
SELECT i / 3.0 < 1 AS x, id FROM w ORDER BY i / 3.0 DESC, 2;
SELECT round(x, 3) FROM (SELECT i / 3.0 AS x FROM w) s ORDER BY x;
SELECT id FROM (SELECT id, i / 3.0 AS x FROM w) s WHERE x > 0.5 ORDER BY x, id;
SELECT round(max(i / 3.0), 5), round(min(i / 7.0), 5), round(greatest(1 / 3.0, 0.5), 2), round(least(1 / 3.0, 0.5), 3) FROM w;
SELECT row_number() OVER (ORDER BY i / 3.0), id FROM w ORDER BY id;
SELECT i FROM w GROUP BY i HAVING sum(n / 3) > 1 ORDER BY sum(n / 3);
SELECT count(*) FROM w GROUP BY round(i / 3.0) ORDER BY round(i / 3.0);
SELECT 1 / 3.0 > 0.1::float8, 1 / 3.0 > 1::float8, 1 / 3.0 < 1;
SELECT i FROM w WHERE i / 3.0 > $1 ORDER BY i; -- with numeric 0.5
SELECT i FROM w WHERE i / 3.0 > $1 ORDER BY i; -- with float8 0.5
SELECT DISTINCT i / 3.0 > 1 FROM w ORDER BY 1;
SELECT round(x, 2) AS y FROM (SELECT i / 3.0 AS x FROM w UNION SELECT n FROM w) s ORDER BY x;
WITH c AS (SELECT i / 3.0 AS x FROM w) SELECT count(*) FROM c WHERE x >= 1;
SELECT count(*) FROM (SELECT i / 3.0 AS x FROM w) a JOIN (SELECT i / 3.0 AS x FROM w) b ON a.x > b.x;
SELECT round(x, 4) FROM (SELECT i / 3.0 AS x FROM w UNION ALL SELECT n / 7 FROM w ORDER BY 1) s WHERE x IS NOT NULL ORDER BY round(x, 4);
SELECT i / 3.0 AS x FROM w ORDER BY 1; -- documented numeric-scale
SELECT n / 3 > 1 OR n / 3 < 0.5, NOT n / 3 > 1 FROM w ORDER BY id;
SELECT round(2 * n / 3, 5) > 1 FROM w ORDER BY 2 * n / 3 DESC NULLS LAST;

== averages are numerics
CREATE TABLE w (id int PRIMARY KEY, i int, n numeric(6,2));
INSERT INTO w VALUES (1, 2, 0.1), (2, 3, 0.2);
SELECT round(avg(i)), avg(i)::int, avg(n) = 0.15, avg(i) > 2.4, avg(n) < 0.2 FROM w;
SELECT round(avg(i) OVER ()), avg(i) OVER () > 2 FROM w;
SELECT id FROM w GROUP BY id HAVING avg(n) > 0.15 ORDER BY avg(n) DESC;
SELECT avg(i) / 2 > 1.2, avg(NULL::int) FROM w;
SELECT sum(x) FROM (VALUES (1e308::float8), (1e308)) v(x); -- documented numeric-overflow

== numerics show their scale
CREATE TABLE w (id int PRIMARY KEY, r numeric(10,2), q numeric(8,3), i int);
INSERT INTO w VALUES (1, 1.5, 2, 3), (2, 0, 1.125, 2), (3, NULL, NULL, NULL);
SELECT r, r + 1, r * 2, r * q, r - q, -r, abs(r), r * 1.10, r + q, r % 1 FROM w ORDER BY id;
SELECT sum(r), max(r), min(q), sum(r * i), sum(r) + 1, sum(r * 1.5) FROM w;
SELECT sum(r) OVER (ORDER BY id), lag(r) OVER (ORDER BY id) FROM w ORDER BY id;
SELECT 1.50, 1.0, 1.5 + 1.50, 2.5::numeric(10,2), 3::numeric(5,1), 0.10 * 2, 1e3, 1e-3, 1.50e1, .5, 5.;
SELECT round(r, 1), round(q), round(i / 7.0, 4), trunc(q, 1), ceil(r), floor(q), round(r, 3) FROM w ORDER BY id;
SELECT coalesce(r, 0.00), CASE WHEN i > 2 THEN r ELSE 9.99 END, greatest(r, 1.25), nullif(r, 0) FROM w ORDER BY id;
SELECT r FROM w UNION ALL SELECT 2.50 ORDER BY 1;
SELECT extract(second FROM timestamp '2020-01-01 00:00:01.5'), extract(epoch FROM timestamp '2020-01-01'), extract(year FROM date '2020-01-01');
SELECT (SELECT sum(r) FROM w), (SELECT r FROM w WHERE id = 1) * 2;
UPDATE w SET r = r + 1 WHERE id = 1 RETURNING r, r * 2, r + 0.125;
INSERT INTO w (id, r) VALUES (4, 7.1) RETURNING r, r::text, r + 1;
SELECT r::varchar(3), r::char(3), q::text, (r + q)::text, concat(r * 2, '/', q), r || '' FROM w WHERE id = 1;
SELECT i, sum(r) AS total FROM w GROUP BY i HAVING sum(r) > 1 ORDER BY total DESC;
SELECT coalesce(sum(r), 0) FROM w; -- documented numeric-scale
SELECT r / 3 FROM w WHERE id = 1;

== moments rounded to digits of a second
SELECT timestamp '1999-12-31 23:59:59.5'::timestamp(0), timestamptz '1999-12-31 23:59:59.5+00'::timestamptz(0), timestamp '2000-01-01 00:00:00.5'::timestamp(0);
SELECT timestamp '1999-12-31 23:59:59.125'::timestamp(2), timestamp '2020-01-01 00:00:00.125'::timestamp(2), timestamp '1970-01-01 00:00:00.0005'::timestamp(3);
SELECT timestamp '2020-12-31 23:59:59.9'::timestamp(0), timestamp '1999-12-31 23:59:59.4'::timestamp(0), timestamp '0001-01-01 00:00:00.7'::timestamp(0);
SELECT '23:59:59.999'::time(0)::text, '23:59:58.5'::time(0), '00:00:00.5'::time(0), '12:00:00.125'::time(2);
SELECT date_trunc('decade', timestamp '0019-05-05'), date_trunc('century', timestamp '0001-05-05');
SELECT date_trunc('decade', timestamp '0009-05-05'); -- documented moments-in-words

== logarithms and arcs of what has none
SELECT log10(-1);
SELECT log10(0::float8);
SELECT log10(1000::float8), log(1000::float8), asin(1), acos(-1);
SELECT asin(2);
SELECT acos(-1.5::float8);
SELECT exp(-1000::float8);
SELECT power(1e-200::float8, 2);
SELECT exp('-Infinity'::float8), power(0::float8, 2), power(2::float8, -3);

== constants of numbers as text
SELECT 1e3::text, .5::text, 5.::text, 007::text, 1.5e-3::text, 1.50e2::text || 'x', concat(1e3, .50), 12345678901234567890.50::text;
SELECT extract(hour FROM time '24:00'), extract(epoch FROM time '24:00'), extract(minute FROM time '24:00'), date_part('hour', time '24:00');
SELECT $1 ^ 2, 2 ^ $2, '2' ^ 3; -- with ? "1.5", ? "0.5"

== rows, compounds and stars of numerics of many digits
CREATE TABLE w (id int PRIMARY KEY, i int, r numeric(10,2));
INSERT INTO w VALUES (1, 1, 2.5), (2, 3, 10), (3, 2, 7);
SELECT (1 / 3.0, 1) < (0.5, 2), (1 / 3.0, 1) > (0.5, 2), (i / 3.0, id) <= (2 / 3.0, 2) FROM w ORDER BY id;
SELECT r FROM w UNION ALL SELECT 0.50 ORDER BY r;
SELECT r AS x FROM w ORDER BY x DESC;
SELECT round(y, 3) FROM (SELECT i / 3.0 AS y FROM w UNION ALL SELECT 0.5 ORDER BY y) s ORDER BY 1;
SELECT x FROM (SELECT i / 3.0 AS y, id AS x FROM w UNION ALL SELECT 0.5, 9 ORDER BY y LIMIT 2) s ORDER BY x;
SELECT * FROM (SELECT r * 1.1 AS y, id FROM w) s ORDER BY y; -- documented numeric-scale
SELECT * FROM (SELECT i / 3.0 AS y, id FROM w) s ORDER BY 1; -- refused ORDER BY
SELECT * FROM w ORDER BY 3;
SELECT DISTINCT r AS x FROM w ORDER BY x;

== no number as a numeric
SELECT 'NaN'::text::numeric > 1; -- refused NaN
SELECT 'NaN'::numeric + 1 > 1; -- refused NaN
SELECT greatest('NaN'::text::numeric, 1); -- refused NaN
SELECT sum(x::numeric) FROM (VALUES ('NaN'), ('1')) v(x); -- refused NaN
SELECT 1;

== numerics of more than 28 digits
SELECT -1234567890123456789012345678901234.5 < -1234567890123456789012345678901234.4, abs(-1234567890123456789012345678901234.5::numeric)::text;
SELECT -1234567890123456789012345678901234.5, 123456789.123456789 * 987654321.987654321;
SELECT $1::numeric; -- with numeric 1.0000000000000000000000000000000001 / documented numeric-digits

== keywords as names
CREATE TABLE kw (PRIMARY KEY (id), id int, values int, set int, exists bool, CHECK (values > 0), "order" text);
INSERT INTO kw (id, values, set, exists) VALUES (1, 2, 3, true), (2, 4, 5, false);
UPDATE kw SET values = 7, set = set + 1, exists = NOT exists WHERE set > 3 RETURNING values, set, exists;
SELECT values, set, exists FROM kw WHERE NOT exists OR set > 1 ORDER BY values;
SELECT kw.values, kw.set, kw.order, kw.exists FROM kw ORDER BY kw.id;
SELECT id AS from, values AS order, set AS group, 1 AS select, 2 AS where, 3 AS null, 4 AS user, 5 AS table, 6 AS in, 7 AS as FROM kw ORDER BY id;
SELECT id AS from FROM kw UNION SELECT 9 AS union ORDER BY 1;
SELECT (SELECT max(id) AS limit FROM kw) AS with, CAST(1 AS int) AS default, count(*) AS values FROM kw;
INSERT INTO kw (id, values) VALUES (1, -1);
