== casts between types
SELECT '5'::int;
SELECT ' 5 '::int;
SELECT '5.5'::int;
SELECT 'abc'::int;
SELECT ''::int;
SELECT '5x'::int;
SELECT CAST('12' AS integer) + 1;
SELECT CAST('1.5' AS numeric) * 2;
SELECT CAST('1e3' AS float8);
SELECT CAST('abc' AS float8);
SELECT CAST('abc' AS numeric);
SELECT CAST(1.7 AS integer);
SELECT CAST(-1.7 AS integer);
SELECT CAST(7 AS text);
SELECT CAST(1.50 AS text);
SELECT CAST(1.5::float8 AS text);
SELECT CAST(true AS text);
SELECT true::int;
SELECT false::int;
SELECT 1::bool;
SELECT 0::bool;
SELECT 2::boolean;
SELECT 'yes'::bool;
SELECT 'off'::bool;
SELECT 'T'::bool;
SELECT 'maybe'::bool;
SELECT 'abc'::varchar(2);
SELECT 'abc'::char(5) || '|';
SELECT 'abc'::varchar(10);
SELECT CAST('abcdef' AS varchar(3));
SELECT 12345::text;
SELECT 12345::varchar(3);
SELECT NULL::int;
SELECT NULL::text IS NULL;
SELECT NULL::int + 1;
SELECT '9223372036854775808'::bigint;
SELECT '2147483648'::int;
SELECT '32768'::smallint;
SELECT '0x1F'::int;
SELECT '1_000'::int;
SELECT '2020-01-02'::date;
SELECT '2020-13-02'::date;
SELECT '2020-02-30'::date;
SELECT 'not a date'::date; -- documented sqlstates
SELECT '2020-01-02 03:04:05'::timestamp;
SELECT '2020-01-02'::timestamp;
SELECT '2020-01-02 03:04:05.5'::timestamp;
SELECT '2020-01-02 03:04:05.123456789'::timestamp;
SELECT '2020-01-02T03:04:05Z'::timestamptz;
SELECT '2020-01-02 03:04:05+02'::timestamptz;
SELECT '2020-01-02 03:04:05+02'::timestamp;
SELECT '2020-01-02 03:04:05'::date;
SELECT '2020-01-02 03:04:05'::timestamp::date;
SELECT '03:04'::time;
SELECT '03:04:05.60'::time;
SELECT '25:00'::time;
SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid;
SELECT 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid;
SELECT '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'::uuid;
SELECT 'nope'::uuid;
SELECT '\x00ff'::bytea;
SELECT 'abc'::bytea;
SELECT '\xzz'::bytea; -- documented sqlstates
SELECT '{"a": 1}'::json;
SELECT '{"a":1, "b":[1,2]}'::jsonb;
SELECT '{bad'::json;
SELECT 1::int::text::int;
SELECT (1 + 2)::text;
SELECT 1 + 2::text;
SELECT -5::text;
SELECT 'x'::text COLLATE "C";
SELECT CAST(CAST('5' AS text) AS int);
SELECT int '5';
SELECT date '2020-01-02';
SELECT timestamp '2020-01-02 03:04:05';
SELECT interval '1 day'; -- refused type interval
SELECT 'a'::nosuchtype;
SELECT CAST(1 AS nosuchtype);
SELECT '1 day'::interval; -- refused type interval
SELECT 1::money; -- refused type money
SELECT '{1,2}'::int[]; -- refused array
SELECT 5::regclass; -- documented catalogue-types
SELECT 'x'::name; -- documented catalogue-types
SELECT 5::oid;

== NULL and three-valued logic
SELECT NULL = NULL;
SELECT NULL <> NULL;
SELECT NULL IS NULL;
SELECT 1 IS NULL;
SELECT 1 IS NOT NULL;
SELECT NULL AND false;
SELECT NULL AND true;
SELECT NULL OR true;
SELECT NULL OR false;
SELECT NOT NULL::bool;
SELECT 1 IS DISTINCT FROM NULL;
SELECT NULL IS NOT DISTINCT FROM NULL;
SELECT 1 IS DISTINCT FROM 1;
SELECT 1 = NULL;
SELECT 1 IN (1, NULL);
SELECT 2 IN (1, NULL);
SELECT 2 NOT IN (1, NULL);
SELECT 2 NOT IN (1, 3);
SELECT NULL IN (1, 2);
SELECT NULL BETWEEN 1 AND 2;
SELECT 1 BETWEEN NULL AND 0;
SELECT coalesce(NULL, 5);
SELECT coalesce(NULL, NULL);
SELECT coalesce(NULL, 'a', 'b');
SELECT nullif(1, 1);
SELECT nullif(1, 2);
SELECT nullif('a', 'b');
SELECT CASE WHEN NULL THEN 1 ELSE 2 END;
SELECT CASE NULL WHEN NULL THEN 1 ELSE 2 END;
SELECT CASE 1 WHEN 1 THEN 'one' END;
SELECT CASE WHEN 1 = 2 THEN 'x' END;
SELECT 'a' || NULL;
SELECT NULL || NULL;
SELECT length(NULL);
SELECT NULL LIKE 'a';
SELECT 'a' LIKE NULL;
SELECT true IS TRUE, false IS TRUE, NULL IS TRUE;
SELECT true IS NOT TRUE, NULL IS NOT TRUE, NULL IS UNKNOWN;
SELECT false IS FALSE, NULL IS NOT FALSE;
SELECT concat('a', NULL, 'b');
SELECT concat_ws(',', 'a', NULL, 'b');

== booleans
SELECT true;
SELECT false;
SELECT NOT true;
SELECT true AND false, true OR false;
SELECT 1 = 1;
SELECT 1 < 2, 1 > 2, 1 <= 1, 1 >= 2, 1 <> 2, 1 != 1;
SELECT 'a' = 'a';
SELECT true = true;
SELECT true > false;
SELECT true = 1; -- documented booleans-and-numbers
SELECT true + 1;
SELECT NOT 1; -- documented booleans-and-numbers
SELECT 1 AND 1; -- documented booleans-and-numbers
SELECT 1 WHERE 1; -- documented booleans-and-numbers
SELECT 1 WHERE 'x';
SELECT 1 WHERE true;
SELECT 1 WHERE false;
SELECT 1 WHERE NULL;
SELECT EXISTS (SELECT 1);
SELECT NOT EXISTS (SELECT 1 WHERE false);
SELECT 1 IN (1, 2);
SELECT 'a' LIKE 'a%';
CREATE TABLE b (id int PRIMARY KEY, f bool, g boolean DEFAULT true);
INSERT INTO b VALUES (1, true, false), (2, false, true), (3, NULL, NULL);
INSERT INTO b (id, f) VALUES (4, true), (5, 1 > 2);
INSERT INTO b (id, f) VALUES (8, 'x');
INSERT INTO b (id, f) VALUES (9, 5);
SELECT * FROM b ORDER BY id;
SELECT id FROM b WHERE f ORDER BY id;
SELECT id FROM b WHERE NOT f ORDER BY id;
SELECT id FROM b WHERE f = true ORDER BY id;
SELECT id FROM b WHERE f IS NOT TRUE ORDER BY id;
SELECT id FROM b WHERE f = 't' ORDER BY id;
SELECT id FROM b WHERE f = 1 ORDER BY id; -- documented booleans-and-numbers
SELECT id, f AND g, f OR g FROM b ORDER BY id;
SELECT f, count(*) FROM b GROUP BY f ORDER BY f;
SELECT bool_and(f), bool_or(f), every(f) FROM b;
SELECT sum(f) FROM b;
SELECT max(f) FROM b; -- documented arguments-of-any-type
SELECT count(*) FILTER (WHERE f) FROM b;
SELECT id, CASE WHEN f THEN 'yes' ELSE 'no' END FROM b ORDER BY id;
SELECT f::text FROM b ORDER BY id;
SELECT f::int FROM b ORDER BY id;
SELECT id FROM b ORDER BY f, id;
SELECT id, f = g FROM b ORDER BY id;
SELECT id, id > 2 AS big FROM b ORDER BY id;
UPDATE b SET f = NOT f RETURNING id, f;
UPDATE b SET f = id > 2 RETURNING id, f;
SELECT id FROM b WHERE id > 2 AND f ORDER BY id;

== other forms of booleans
CREATE TABLE b (id int PRIMARY KEY, f bool);
INSERT INTO b VALUES (4, 't');
INSERT INTO b VALUES (5, 'no');
INSERT INTO b VALUES (6, '1');
INSERT INTO b VALUES (7, 1); -- documented booleans-and-numbers
INSERT INTO b VALUES (8, 'TRUE');
INSERT INTO b VALUES ($1, $2); -- with ? 9, ? "yes"
INSERT INTO b VALUES ($1, $2); -- with int4 10, bool "f"
INSERT INTO b VALUES ($1, $2); -- with ? 11, ? "x"
SELECT * FROM b WHERE id > 8 ORDER BY id;

== comparisons of mixed types
SELECT 1 = 1.0;
SELECT 1 = '1';
SELECT '1' = 1;
SELECT 1 = 'x';
SELECT 1.5 > 1;
SELECT 1 < '10';
SELECT '10' < '9';
SELECT '10'::int < '9'::int;
SELECT 'a'::text = 1;
SELECT '2020-01-02'::date = '2020-01-02';
SELECT '2020-01-02'::date < '2020-1-3';
SELECT '2020-01-02'::date = '2020-01-02 00:00:00'::timestamp;
SELECT '2020-01-02'::date + 1;
SELECT '1'::text = '1.0'::text;
CREATE TABLE m (id int PRIMARY KEY, i int, t text, f float8, n numeric, d date, s timestamp, z timestamptz, u uuid);
INSERT INTO m VALUES (1, 10, '10', 10, 10, '2020-01-10', '2020-01-10 00:00:00', '2020-01-10 00:00:00+00:00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
INSERT INTO m VALUES (2, 9, '9', 9.5, 9.5, '2020-01-09', '2020-01-09 10:00:00', '2020-01-09 08:00:00+00:00', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
SELECT id FROM m WHERE i = '10';
SELECT id FROM m WHERE i = 'x';
SELECT id FROM m WHERE t = 10;
SELECT id FROM m WHERE i = t;
SELECT id FROM m WHERE t < '9' ORDER BY id;
SELECT id FROM m WHERE i < 10 ORDER BY id;
SELECT id FROM m WHERE i < 9.5 ORDER BY id;
SELECT id FROM m WHERE f = 9.5;
SELECT id FROM m WHERE n = 9.50;
SELECT id FROM m WHERE n = '9.50';
SELECT id FROM m WHERE f = n ORDER BY id;
SELECT id FROM m WHERE d = '2020-01-09';
SELECT id FROM m WHERE d < '2020-1-10';
SELECT id FROM m WHERE d > 'x';
SELECT id FROM m WHERE d = s;
SELECT id FROM m WHERE s = '2020-01-10';
SELECT id FROM m WHERE s < '2020-01-09 11:00';
SELECT id FROM m WHERE s >= d ORDER BY id;
SELECT id FROM m WHERE z = '2020-01-09 08:00+00';
SELECT id FROM m WHERE z < '2020-01-09 09:00+00';
SELECT id FROM m WHERE u = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11';
SELECT id FROM m WHERE u = 'x';
SELECT u FROM m ORDER BY id;
SELECT id FROM m WHERE i IN ('9', '10') ORDER BY id;
SELECT id FROM m WHERE t IN (9, 10);
SELECT id FROM m WHERE i BETWEEN '9' AND '10' ORDER BY id;
SELECT * FROM m ORDER BY t;
SELECT * FROM m ORDER BY i;
SELECT id FROM m WHERE d = '2020-1-9'::text;
SELECT id FROM m WHERE d > $1; -- with varchar "2020-1-9"
SELECT id FROM m WHERE $1 >= z; -- with text "2020-01-09"
SELECT id FROM m WHERE u IN ($1); -- with text "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
SELECT id FROM m WHERE s BETWEEN $1 AND $2; -- with varchar "2020-1-1", varchar "2020-02-01"

== values into columns
CREATE TABLE v (id int PRIMARY KEY, i int, s smallint, b bigint, r real, f double precision, n numeric(6,2), t text, v varchar(3));
INSERT INTO v (id, i) VALUES (1, 'abc');
INSERT INTO v (id, i) VALUES (1, '12');
INSERT INTO v (id, i) VALUES (6, ' 7 ');
INSERT INTO v (id, i) VALUES (7, '');
INSERT INTO v (id, f) VALUES (10, 'abc');
INSERT INTO v (id, f) VALUES (11, '1.5');
INSERT INTO v (id, f) VALUES (12, 7);
INSERT INTO v (id, t) VALUES (13, 7);
INSERT INTO v (id, t) VALUES (14, 'x');
INSERT INTO v (id, v) VALUES (16, 'abcd');
INSERT INTO v (id, n) VALUES (19, 1.25);
INSERT INTO v (id, n) VALUES (19, 1.5), (20, 2), (21, -0.01);
INSERT INTO v (id, n) VALUES (22, 10000);
INSERT INTO v (id, n) VALUES (22, 'x');
INSERT INTO v (id, r) VALUES (23, 1.5);
INSERT INTO v (id, b) VALUES (24, 9223372036854775807);
INSERT INTO v (id, i) SELECT 25, id FROM v WHERE id = 13;
SELECT * FROM v ORDER BY id;
UPDATE v SET i = 'x' WHERE id = 1;
UPDATE v SET i = '13' WHERE id = 1 RETURNING i;
UPDATE v SET t = 5 WHERE id = 13 RETURNING t;
UPDATE v SET v = 'toolong' WHERE id = 1;
UPDATE v SET n = n + 1 WHERE id = 20 RETURNING n;

== values of another type into columns
CREATE TABLE v (id int PRIMARY KEY, i int, s smallint, b bigint, r real, f double precision, n numeric(6,2), t text, c char(4), v varchar(3));
INSERT INTO v (id, i) VALUES (2, 1.6);
INSERT INTO v (id, i) VALUES (3, 2.5);
INSERT INTO v (id, i) VALUES (4, true); -- documented booleans-and-numbers
INSERT INTO v (id, i) VALUES (5, '1.5');
INSERT INTO v (id, i) VALUES (8, 3000000000); -- documented integer-width
INSERT INTO v (id, i) VALUES (9, 9223372036854775808);
INSERT INTO v (id, s) VALUES (10, 40000); -- documented integer-width
INSERT INTO v (id, t) VALUES (14, 1.50);
INSERT INTO v (id, t) VALUES (15, true);
INSERT INTO v (id, v) VALUES (17, 'abc   '); -- documented trailing-blanks
INSERT INTO v (id, n) VALUES (19, 1.005);
INSERT INTO v (id, r) VALUES (22, 3.14);
INSERT INTO v (id, r) VALUES (23, 16777217);
SELECT r FROM v WHERE id IN (22, 23) ORDER BY id; -- documented real-width
INSERT INTO v (id, t) VALUES (30, '5');
INSERT INTO v (id, i) SELECT 31, t FROM v WHERE id = 30; -- documented assigned-text
INSERT INTO v (id, t) SELECT 32, id FROM v WHERE id = 30;
INSERT INTO v (id, f) VALUES (33, 2.5);
UPDATE v SET i = f WHERE id = 33 RETURNING i;
INSERT INTO v (id, c) VALUES (40, 'ab');
SELECT c FROM v WHERE id = 40; -- documented char-padding
SELECT c || '|', length(c) FROM v WHERE id = 40;
SELECT id FROM v WHERE c = 'ab';

== constants and their types
SELECT 1, 1.5, 'a', NULL, true;
SELECT 'it''s';
SELECT E'a\nb';
SELECT E'\\x', 'a\b';
SELECT $$dollar 'quoted'$$;
SELECT $tag$x$tag$;
SELECT B'101'; -- refused bit strings
SELECT X'1F'; -- documented sqlite-syntax
SELECT U&'d\0061t'; -- refused strings with U&
SELECT 'a' 'b';
SELECT "a" FROM (SELECT 1 AS "a") x;
SELECT "nosuch";
SELECT 'a' AS "Mixed Case";
SELECT 1 AS one, 2 two;
SELECT 0x1F; -- documented sqlite-syntax
SELECT 1e2;
SELECT .5;
SELECT 5.;
SELECT 'é日本🙂';
SELECT 'a' AS A;
SELECT length('é日本🙂'), octet_length('é日本🙂');
SELECT; -- refused SELECT
SELECT 1 UNION SELECT 'a';
SELECT 1 UNION ALL SELECT 2.5;
SELECT NULL UNION ALL SELECT 1;
VALUES (1, 'a'), (2, 'b');
VALUES (1), ('a');
VALUES (1), (2.5);

== bytea
CREATE TABLE y (id int PRIMARY KEY, b bytea);
INSERT INTO y VALUES (1, '\x00ff10'), (2, 'abc'), (3, NULL), (4, '');
SELECT * FROM y ORDER BY id;
SELECT id, length(b), octet_length(b) FROM y ORDER BY id;
SELECT id FROM y WHERE b = '\x00ff10';
SELECT id, b || '\x01'::bytea FROM y ORDER BY id;
SELECT encode(b, 'hex') FROM y ORDER BY id; -- refused encode
SELECT decode('00ff', 'hex'); -- refused decode
SELECT encode('abc'::bytea, 'base64'); -- refused encode
SELECT substr(b, 1, 2) FROM y ORDER BY id;
SELECT max(b) FROM y; -- documented arguments-of-any-type
INSERT INTO y VALUES (5, '\xzz'); -- documented sqlstates
INSERT INTO y VALUES (6, 'a\134b');
SELECT b FROM y WHERE id = 6;
SELECT id FROM y ORDER BY b;
SELECT b::text FROM y ORDER BY id;
SELECT get_byte(b, 0) FROM y WHERE id = 1; -- refused get_byte
SELECT md5('abc');
SELECT sha256('abc'::bytea); -- refused sha256

== uuid and json
CREATE TABLE j (id int PRIMARY KEY, u uuid, j json, k jsonb);
INSERT INTO j VALUES (1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": {"b": [1, "x", null]}}', '{"b": 2, "a":1}');
INSERT INTO j VALUES (2, 'A0EEBC999C0B4EF8BB6D6BB9BD380A12', '[1, 2.50, "t"]', '[1, 2.50, "t"]');
INSERT INTO j (id, u) VALUES (3, 'x');
INSERT INTO j (id, j) VALUES (4, '{bad}');
INSERT INTO j (id, k) VALUES (5, '');
SELECT u FROM j ORDER BY id;
SELECT j FROM j ORDER BY id;
SELECT k FROM j ORDER BY id; -- documented jsonb-numbers
SELECT j -> 'a' FROM j ORDER BY id;
SELECT j ->> 'a' FROM j ORDER BY id;
SELECT j -> 'a' -> 'b' -> 0 FROM j WHERE id = 1;
SELECT j -> 'a' -> 'b' ->> 1 FROM j WHERE id = 1;
SELECT j -> 'a' -> 'b' -> 2 FROM j WHERE id = 1;
SELECT j -> 'a' -> 'b' ->> 2 FROM j WHERE id = 1;
SELECT j -> 'a' -> 'b' -> -1 FROM j WHERE id = 1;
SELECT j -> 0 FROM j WHERE id = 2;
SELECT j ->> 1 FROM j WHERE id = 2;
SELECT k ->> 'a' FROM j WHERE id = 1;
SELECT k -> 'b' FROM j WHERE id = 1;
SELECT (k ->> 'a')::int + 1 FROM j WHERE id = 1;
SELECT k ->> 'nosuch' FROM j WHERE id = 1;
SELECT j #> '{a,b,0}' FROM j WHERE id = 1; -- refused operator #>
SELECT j #>> '{a,b,1}' FROM j WHERE id = 1; -- refused operator #>>
SELECT k @> '{"a":1}' FROM j WHERE id = 1; -- refused operator @>
SELECT k ? 'a' FROM j WHERE id = 1; -- refused operator ?
SELECT '{"a":1}'::json -> 'a';
SELECT '{"a":1}'::jsonb ->> 'a';
SELECT '{"a":"x"}'::json ->> 'a';
SELECT '{"a":true}'::json ->> 'a';
SELECT '{"a":1.50}'::json ->> 'a';
SELECT '{"a.b":1}'::json ->> 'a.b';
SELECT '{"$":1}'::json ->> '$';
SELECT '{"a\"b": 1, "c\\d": 2, "": 3, "é": 4}'::json ->> 'a"b', '{"a\"b": 1, "c\\d": 2, "": 3}'::jsonb ->> 'c\d', '{"": 3}'::jsonb -> '', '{"é": 4}'::json -> 'é';
SELECT '{"a":1, "a": [2, 3]}'::json -> 'a', '{"a":1, "a": [2, 3]}'::jsonb -> 'a';
SELECT '"str"'::jsonb -> 0, '"str"'::jsonb ->> -1, '"str"'::jsonb -> 1, '"str"'::json -> 0, '"str"'::jsonb -> 'a', '7'::jsonb -> 0;
SELECT '{"a": {"b" : 1.50 }}'::json -> 'a', '{"a": {"b" : 1.50 }}'::jsonb -> 'a'; -- documented jsonb-numbers
SELECT '{"a": null, "b": "null", "c": ["x"]}'::jsonb ->> 'a', '{"b": "null"}'::jsonb ->> 'b', '{"c": ["x"]}'::jsonb -> 'c' ->> 0;
SELECT '"\u0000"'::jsonb;
SELECT '{"\ud800": 1}'::jsonb;
SELECT '"\u0000"'::json;
SELECT '{"a": "\u0000"}'::json ->> 'a';
SELECT '{"a": "\ud83d\ude00"}'::jsonb ->> 'a';
INSERT INTO j (id, j) VALUES (6, '{"b":2, "a":1}');
INSERT INTO j (id, k) SELECT 7, j FROM j WHERE id = 6;
SELECT k, k = '{"a":1,"b":2}' FROM j WHERE id = 7;
UPDATE j SET k = j WHERE id = 6 RETURNING k;
DELETE FROM j WHERE id > 5;
SELECT '{"a":1}'::text -> 'a'; -- documented operators-of-any-type
SELECT k = '{"a":1,"b":2}' FROM j WHERE id = 1;
SELECT j = '[]' FROM j; -- documented operators-of-any-type
SELECT '{"a":1}'::jsonb = '{"a":1.0}'::jsonb, '{"a":[-0.0, 1e2]}'::jsonb <> '{"a":[0,100.00]}'::jsonb, '[1]'::jsonb = '[2]'::jsonb, '1'::jsonb IN ('1.0', '2');
SELECT '{"a":1}'::jsonb = '{"a":1}'::json;
SELECT count(DISTINCT v) FROM (VALUES ('{"a":1, "b": 2}'::jsonb), ('{"b":2.0,"a":1}'), ('1'), ('1.00'), ('"1"')) w(v);
SELECT coalesce(k, '7') = '7.0', k IS NOT DISTINCT FROM '7.0' FROM j ORDER BY id;
SELECT '[10]'::jsonb > '[9]'::jsonb; -- refused jsonb values have no order
SELECT k FROM j ORDER BY k; -- refused jsonb values have no order
SELECT min(k) FROM j;
SELECT json_array_length('[1,2,3]');
SELECT jsonb_array_length('[1,2,3]'); -- refused jsonb_array_length
SELECT json_build_object('a', 1, 'b', 'x'); -- refused json_build_object
SELECT jsonb_build_object('a', 1); -- refused jsonb_build_object
SELECT json_build_array(1, 'a', NULL); -- refused json_build_array
SELECT json_agg(id) FROM j; -- refused json_agg
SELECT jsonb_agg(id) FROM j; -- refused jsonb_agg
SELECT json_object_agg(id, u) FROM j; -- refused json_object_agg
SELECT to_json('a'::text); -- refused to_json
SELECT row_to_json(j) FROM j; -- documented sqlstates
SELECT jsonb_set('{"a":1}', '{a}', '2'); -- refused jsonb_set
SELECT json_typeof('[1]'); -- refused json_typeof
SELECT jsonb_typeof('{"a":1}'); -- refused jsonb_typeof
SELECT k || '{"c":3}' FROM j WHERE id = 1; -- refused operator || of json
SELECT k - 'a' FROM j WHERE id = 1; -- refused jsonb - unknown
SELECT * FROM json_array_elements('[1,2]'); -- documented json-functions
SELECT * FROM jsonb_each('{"a":1}'); -- documented json-functions
UPDATE j SET k = '{"z": 1,  "y": 2}' WHERE id = 1 RETURNING k;
SELECT id FROM j WHERE k ->> 'y' = '2';
SELECT id FROM j WHERE (k -> 'y')::int = 2;
SELECT gen_random_uuid() IS NOT NULL;

== arrays
SELECT ARRAY[1, 2, 3]; -- refused array
SELECT 2 = ANY(ARRAY[1, 2, 3]);
SELECT 2 = ANY('{1,2,3}');
SELECT 5 = ALL(ARRAY[5, 5]); -- refused ALL
SELECT 'a' = ANY('{a,b}');
SELECT 5 <> ALL('{1,2}'::int[]);
SELECT '{1,2}'::int[]; -- refused array
SELECT (ARRAY[1, 2])[1]; -- refused array
SELECT array_length(ARRAY[1, 2], 1); -- refused array
SELECT unnest(ARRAY[1, 2]); -- refused array
SELECT array_agg(x) FROM (VALUES (1), (2)) v(x); -- refused array_agg
CREATE TABLE a (id int, l int[]); -- refused array
CREATE TABLE a2 (id int, l text[]); -- refused an array as the type of a column (text[])
SELECT 1 = ANY($1); -- with ? "{1,2}" / documented array-parameters
SELECT 1 = ANY($1::int[]); -- with ? "{1,2}"
SELECT 3 = ANY($1); -- with int4array "{1,2}"
SELECT 'b' = ANY($1); -- with textarray "{a,b}"
SELECT id FROM (VALUES (1), (2), (3)) v(id) WHERE id = ANY($1) ORDER BY id; -- with int4array "{1,3}"
SELECT id FROM (VALUES (1), (2), (3)) v(id) WHERE id <> ALL($1) ORDER BY id; -- with int8array "{1,3}"
SELECT id FROM (VALUES ('a'), ('b,"c'), ('NULL')) v(id) WHERE id = ANY($1) ORDER BY id; -- with textarray "{\"b,\\\"c\",\"NULL\",NULL}"

== blanks at the end of char(n)
CREATE TABLE t (id int, a char(3) UNIQUE, b character(2), c bpchar);
INSERT INTO t VALUES (1, 'a  ', 'x ', 'y');
INSERT INTO t (a) VALUES ('a');
INSERT INTO t (a) VALUES ($1); -- with text "a "
INSERT INTO t (a) VALUES ('abc   ');
INSERT INTO t (a) VALUES ('abcd');
SELECT count(*) FROM t WHERE a = 'a' AND b = 'x';
SELECT id, length(a), length(b) FROM t WHERE a IS NOT NULL ORDER BY a;
INSERT INTO t (a) SELECT 'a' || '  ';
INSERT INTO t (a) SELECT 'b' || ' ' RETURNING length(a);
UPDATE t SET b = 'z ', a = 'q ' || ' ' WHERE id = 1 RETURNING length(a), length(b);
INSERT INTO t (a) VALUES ('q') ON CONFLICT (a) DO UPDATE SET b = 'w ', a = excluded.a RETURNING length(b);
INSERT INTO t (a) VALUES (NULL), (7), (true);
SELECT count(*) FROM t WHERE b = 'w' AND a = 'q';

== numbers as json
CREATE TABLE t (a jsonb, b json);
INSERT INTO t VALUES ('7', '-0.25'), ('{"a": 12345678901234567890}', '[1.50]');
INSERT INTO t VALUES ('12345678901234567890', NULL); -- documented json-in-its-own-form
INSERT INTO t (b) VALUES ('0.12345678901234567890'); -- documented json-in-its-own-form
SELECT a, b FROM t WHERE a = '7';
