== integer division and modulo
SELECT 7 / 2;
SELECT -7 / 2;
SELECT 7 % 3;
SELECT -7 % 3;
SELECT 7 % -3;
SELECT 1 / 0;
SELECT 1 % 0;
SELECT 1.0 / 0;
SELECT 1::float8 / 0;
SELECT NULL / 0;
SELECT 7 / 2.0; -- documented numeric-scale
SELECT 5.5 % 2;
SELECT -5.5 % 2;
SELECT mod(7, -3);
SELECT mod(-7, 3);
SELECT mod(7.5, 2);
SELECT div(7, 2);

== overflow
SELECT 9223372036854775807;
SELECT 9223372036854775807 + 1;
SELECT -9223372036854775807 - 2;
SELECT 9223372036854775807 * 2;
SELECT 9223372036854775808;
SELECT 2147483647 + 1; -- documented integer-width
SELECT 2147483648;
SELECT 2147483647::int8 + 1;
SELECT 32767::int2 + 1::int2; -- documented integer-width
SELECT 40000::int2;
SELECT 3000000000::int4;
SELECT 1e400;
SELECT abs(-9223372036854775808);
SELECT - 9223372036854775808;
CREATE TABLE o (a int8, b int4);
INSERT INTO o VALUES (9223372036854775807, 2147483647);
SELECT a + 1 FROM o;
SELECT b + 1 FROM o; -- documented integer-width
SELECT b * 2 FROM o; -- documented integer-width
SELECT a * a FROM o;
SELECT -a - 2 FROM o;
SELECT sum(a) FROM o; -- documented aggregates-of-integers
INSERT INTO o VALUES (9223372036854775807, 0);
SELECT sum(a) FROM o; -- documented aggregates-of-integers
SELECT sum(b) FROM o;
INSERT INTO o (b) VALUES (2147483648); -- documented integer-width
INSERT INTO o (a) VALUES (9223372036854775808);
UPDATE o SET b = b + 1 WHERE b = 2147483647; -- documented integer-width

== floats as text
SELECT 1.5::float8;
SELECT 1::float8;
SELECT 0.1::float8 + 0.2::float8;
SELECT 1e15::float8;
SELECT 1e16::float8;
SELECT 123456789012345678::float8;
SELECT 1e20::float8;
SELECT 1e100::float8;
SELECT 1e-5::float8;
SELECT 0.0001::float8;
SELECT 1e-4::float8;
SELECT 1e-7::float8;
SELECT (-0.0)::float8;
SELECT '-0'::float8;
SELECT 'NaN'::float8; -- refused NaN cannot be stored
SELECT 'Infinity'::float8;
SELECT '-inf'::float8;
SELECT 3.14::float4, 0.3::real::text, 0.3::real = 0.3::real, (1.0/3)::real::text, 16777217::real::text;
SELECT 1.0::float4 / 3;
SELECT 1.0::float8 / 3;
SELECT 100000.0::float8;
SELECT 1e308::float8 * 10;
SELECT 'NaN'::float8 = 'NaN'::float8; -- refused NaN cannot be stored
SELECT 'NaN'::float8 > 1e300; -- refused NaN cannot be stored

== numeric
SELECT 1.0;
SELECT 1.50;
SELECT 1.5 + 1.50;
SELECT 0.1 + 0.2;
SELECT 1.5 * 1.5;
SELECT 10 / 4.0; -- documented numeric-scale
SELECT 1 / 3.0;
SELECT 2.5::numeric(10,2);
SELECT 2.555::numeric(10,2);
SELECT 2.545::numeric(10,2);
SELECT 12345.678::numeric(5,1);
SELECT 1.5::numeric::int;
SELECT 2.5::numeric::int;
SELECT 2.5::float8::int;
SELECT -1.5::int;
SELECT round(2.5);
SELECT round(2.5::float8);
SELECT round(3.5::float8);
SELECT round(-2.5);
SELECT round(1.2345, 2);
SELECT round(1.2355, 3);
SELECT trunc(1.789);
SELECT trunc(1.789, 1);
SELECT trunc(-1.789);
SELECT ceil(1.2);
SELECT ceil(-1.2);
SELECT floor(1.7);
SELECT floor(-1.2);
SELECT ceil(1.2::float8);
SELECT abs(-1.5);
SELECT abs(-7);
SELECT sign(-3.2);
SELECT sign(5);
SELECT sqrt(4);
SELECT sqrt(2.0); -- documented aggregates-of-integers
SELECT sqrt(-1);
SELECT power(2, 10);
SELECT power(2.0, 3); -- documented aggregates-of-integers
SELECT 2 ^ 10;
SELECT '2' ^ '10';
SELECT exp(1.0::float8);
SELECT ln(1);
SELECT log(100);
SELECT log(0);
SELECT pi();
SELECT 12345678901234567890.123456789;
SELECT 12345678901234567890 + 1;
SELECT 0.1::numeric = 0.10;
SELECT 1e3;
SELECT 1e-3;
SELECT greatest(1, 2, 3);
SELECT least(1, NULL, 3);
SELECT greatest(NULL, NULL);
SELECT 5 & 3, 5 | 3, ~5, 1 << 4, 256 >> 4;
SELECT 5 # 3; -- refused operator #
SELECT @ -5; -- refused operator @
SELECT + 5;
SELECT - -5;
SELECT 2 + 3 * 4 - 1;
SELECT (2 + 3) * 4;
SELECT 2 - 3 - 4;
SELECT 100 / 10 / 2;
SELECT -2 ^ 2;
SELECT 10 % 3 * 2;

== numeric columns keep their scale
CREATE TABLE n (id int, a numeric(10,2), b numeric, c decimal(5,1), d numeric(4));
INSERT INTO n VALUES (1, 1.5, 1.50, 2.2, 3), (2, 100, 100, 100, 100), (3, -0.01, 0.1, 0.1, 1);
SELECT * FROM n ORDER BY id; -- documented numeric-scale
SELECT a + 1, a * 2, a / 3, b + 0.05 FROM n ORDER BY id; -- documented numeric-scale
SELECT sum(a), avg(a), min(a), max(a) FROM n; -- documented aggregates-of-integers
SELECT sum(b), avg(b) FROM n; -- documented aggregates-of-integers
SELECT id FROM n WHERE a = 1.5 ORDER BY id;
SELECT id FROM n ORDER BY a;
INSERT INTO n (id, a) VALUES (4, 123456789.12);
INSERT INTO n (id, d) VALUES (5, 99999);
INSERT INTO n (id, b) VALUES (6, 12345678901234567890.123456789012345678); -- documented numeric-digits
INSERT INTO n (id, b) VALUES (7, 'abc');
INSERT INTO n (id, b) VALUES (8, '2.50');
SELECT b, b * 2 FROM n WHERE id = 8; -- documented numeric-scale
INSERT INTO n (id, b) VALUES (9, 'NaN'); -- documented numeric-nan
UPDATE n SET a = a + 0.05 WHERE id = 1 RETURNING a;

== numeric columns given more digits
CREATE TABLE n (id int, a numeric(10,2), c decimal(5,1), d numeric(4));
INSERT INTO n (id, c) VALUES (1, 2.25);
INSERT INTO n (id, d) VALUES (2, 3.5);
INSERT INTO n (id, a) VALUES (3, -0.005);
INSERT INTO n (id, a) VALUES (4, 0.125::float8);
INSERT INTO n (id, a) VALUES ($1, $2); -- with ? 5, ? "1.255"

== arithmetic on columns
CREATE TABLE t (id int PRIMARY KEY, i int, b bigint, f float8, x text);
INSERT INTO t VALUES (1, 7, 70, 1.5, '5'), (2, -7, -70, -2.5, 'x'), (3, 0, 0, 0, ''), (4, NULL, NULL, NULL, NULL);
SELECT id, i / 2, i % 4, i * 1.5, i + f, b / i FROM t WHERE id < 3 ORDER BY id;
SELECT 10 / i FROM t WHERE id = 3;
SELECT 10 % i FROM t WHERE id = 3;
SELECT f / i FROM t WHERE id = 3;
SELECT i + NULL, NULL * i FROM t ORDER BY id;
SELECT i + x FROM t;
SELECT i + '5' FROM t ORDER BY id;
SELECT x + 1 FROM t;
SELECT x || i FROM t ORDER BY id;
SELECT i || 'a' FROM t ORDER BY id;
SELECT f || 'a' FROM t ORDER BY id;
SELECT i || f FROM t;
SELECT -x FROM t;
SELECT sum(x) FROM t;
SELECT avg(i), sum(i), sum(f), avg(f) FROM t; -- documented aggregates-of-integers
SELECT i / 2.0 FROM t ORDER BY id; -- documented numeric-scale
SELECT f::int FROM t ORDER BY id;
SELECT i::text || '!' FROM t ORDER BY id;
SELECT f % 2 FROM t; -- documented operators-of-any-type
SELECT round(f) FROM t ORDER BY id;
SELECT abs(i), sign(i) FROM t ORDER BY id;
SELECT i = f FROM t ORDER BY id;
SELECT sqrt(b) FROM t WHERE id IN (1, 3) ORDER BY id;

== bigint beside float8
SELECT 9007199254740993::bigint = 9007199254740992::float8; -- documented bigint-beside-float
SELECT 9007199254740993::bigint > 9007199254740992::float8; -- documented bigint-beside-float
SELECT 9007199254740991::bigint = 9007199254740991::float8, 5 = 5.0::float8;
