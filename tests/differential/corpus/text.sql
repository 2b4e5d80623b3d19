== functions
SELECT lower('ÀBC'), upper('àbc');
SELECT lower('ABC'), upper('abc');
SELECT length('abc'), char_length('abc'), character_length('abc');
SELECT substr('hello', 2, 3);
SELECT substr('hello', 2);
SELECT substr('hello', 0, 3);
SELECT substr('hello', -1, 3);
SELECT substr('hello', -2);
SELECT substr('hello', 2, -1);
SELECT substring('hello', 2, 3);
SELECT substring('hello' FROM 2 FOR 3);
SELECT substring('hello' FROM 2);
SELECT substring('hello' FROM 'l+'); -- documented patterns-in-substring
SELECT trim('  a  ');
SELECT trim(both 'x' FROM 'xxaxx');
SELECT trim(leading 'x' FROM 'xxaxx');
SELECT trim('xxaxx', 'x');
SELECT ltrim('  a'), rtrim('a  ');
SELECT ltrim('xya', 'xy'), rtrim('axy', 'xy');
SELECT btrim('xax', 'x');
SELECT replace('aXbX', 'X', '--');
SELECT replace('abc', '', 'x');
SELECT position('l' IN 'hello');
SELECT strpos('hello', 'l');
SELECT strpos('hello', 'z');
SELECT instr('hello', 'l'); -- documented sqlite-functions
SELECT left('hello', 2), right('hello', 2);
SELECT left('hello', -2), right('hello', -2);
SELECT lpad('5', 3, '0'), rpad('5', 3, '0');
SELECT lpad('hello', 2);
SELECT repeat('ab', 3);
SELECT reverse('abc');
SELECT concat('a', 1, true, 1.5);
SELECT concat_ws('-', 'a', 1);
SELECT initcap('hello world');
SELECT split_part('a,b,c', ',', 2);
SELECT translate('abc', 'ab', 'xy');
SELECT ascii('A'), chr(65);
SELECT chr(233);
SELECT char(65); -- documented sqlite-functions
SELECT format('%s-%s', 'a', 1);
SELECT format('%I', 'a b'); -- refused format()
SELECT printf('%d', 5); -- documented sqlite-functions
SELECT quote_literal('it''s');
SELECT quote_literal(E'a\\b\'c'), quote_literal(''), quote_literal(42), quote_literal(NULL::text);
SELECT quote('x'); -- documented sqlite-functions
SELECT quote_ident('A b'); -- refused quote_ident
SELECT hex('a'); -- documented sqlite-functions
SELECT to_hex(255);
SELECT md5('a');
SELECT starts_with('hello', 'he');
SELECT overlay('hello' PLACING 'XX' FROM 2 FOR 2); -- refused overlay
SELECT regexp_replace('abc', 'b', 'x'); -- refused regexp_replace
SELECT 'abc' ~ 'b';
SELECT 'abc' !~ 'b';
SELECT 'ABC' ~* 'b';
SELECT string_agg(x, ',') FROM (VALUES ('a'), ('b')) v(x);
SELECT length(1); -- documented arguments-of-any-type
SELECT lower(1); -- documented arguments-of-any-type
SELECT upper(NULL);
SELECT substr(12345, 2); -- documented arguments-of-any-type
SELECT nosuchfunction(1);
SELECT lower('a', 'b');
SELECT lower();
SELECT typeof(1); -- documented sqlite-functions
SELECT pg_typeof(1); -- refused pg_typeof
SELECT iif(true, 1, 2); -- documented sqlite-functions
SELECT ifnull(NULL, 1); -- documented sqlite-functions
SELECT unicode('A'); -- documented sqlite-functions
SELECT to_char(1234.5, '9999.99'); -- refused to_char
SELECT to_char('2020-01-02'::date, 'YYYY-MM'); -- refused to_char
SELECT to_number('12', '99'); -- refused to_number
SELECT to_date('2020-01-02', 'YYYY-MM-DD'); -- refused to_date
SELECT random() < 2;
SELECT current_user;
SELECT session_user;
SELECT current_schema();
SELECT current_schema;
SELECT current_setting('TimeZone');
SELECT pg_catalog.lower('A');

== concatenation
SELECT 'a' || 'b';
SELECT 'a' || 1;
SELECT 1 || 'a';
SELECT 1 || 2;
SELECT 'a' || 1.50;
SELECT 'a' || true;
SELECT 'a' || NULL || 'b';
SELECT 'a' || '2020-01-02'::date;
SELECT 1.5::float8 || 'x';
SELECT 'a' || 1 + 2;
SELECT 'a' || (1 + 2);

== LIKE
SELECT 'abc' LIKE 'a%';
SELECT 'ABC' LIKE 'a%';
SELECT 'abc' LIKE 'A%';
SELECT 'É' LIKE 'é';
SELECT 'abc' ILIKE 'A%';
SELECT 'ABC' ILIKE 'a_c';
SELECT 'É' ILIKE 'é';
SELECT 'abc' NOT LIKE 'b%';
SELECT 'abc' NOT ILIKE 'A%';
SELECT 'a%c' LIKE 'a\%c';
SELECT 'abc' LIKE 'a\%c';
SELECT 'a%c' LIKE 'a!%c' ESCAPE '!';
SELECT 'abc' LIKE 'a!%c' ESCAPE '!';
SELECT 'a%c' LIKE 'a!%c' ESCAPE chr(33);
SELECT 'A%c' ILIKE 'a!%C' ESCAPE chr(33);
SELECT 'abc' NOT LIKE p ESCAPE e FROM (VALUES ('a!%c', '!'), ('a%c', '!'), ('a', NULL), (NULL, '!')) AS x(p, e);
SELECT 'abc' LIKE 'a' ESCAPE concat('x', 'y');
SELECT 'a\c' LIKE 'a\\c';
SELECT 'a\c' LIKE 'a\c' ESCAPE '';
SELECT 'abc' LIKE 'abc\'; -- documented like-patterns
SELECT 'abc' LIKE 'ab' || '%';
SELECT 'abc' LIKE '_b_';
SELECT '日本' LIKE '__';
SELECT '' LIKE '';
SELECT '' LIKE '%';
SELECT 5 LIKE '5';
SELECT 'abc' ~~ 'a%';
SELECT 'abc' LIKE 'a' ESCAPE 'xx';
SELECT 'abc' SIMILAR TO 'a%'; -- refused SIMILAR TO
SELECT 'abc' GLOB 'a*'; -- documented sqlite-syntax
SELECT 'abc' REGEXP 'a'; -- documented sqlite-syntax
SELECT 'abc' MATCH 'a'; -- documented sqlite-syntax
CREATE TABLE l (id int PRIMARY KEY, t text, i int, UNIQUE (t));
INSERT INTO l VALUES (1, 'Apple', 10), (2, 'apple', 11), (3, 'banana', 20), (4, 'a_b', 21), (5, NULL, NULL), (6, 'a%b', 12);
SELECT id FROM l WHERE t LIKE 'a%' ORDER BY id;
SELECT id FROM l WHERE t ILIKE 'a%' ORDER BY id;
SELECT id FROM l WHERE t LIKE 'A%' ORDER BY id;
SELECT id FROM l WHERE t LIKE 'a\_b' ORDER BY id;
SELECT id FROM l WHERE t LIKE '%\%%' ORDER BY id;
SELECT id FROM l WHERE t NOT LIKE '%a%' ORDER BY id;
SELECT id FROM l WHERE i LIKE '1%' ORDER BY id;
SELECT id FROM l WHERE lower(t) = 'apple' ORDER BY id;
SELECT id FROM l WHERE t LIKE $1 ORDER BY id; -- with ? "a%"
SELECT id FROM l WHERE t ILIKE $1 ORDER BY id; -- with ? "A%"
SELECT id FROM l WHERE t LIKE $1 || '%' ORDER BY id; -- with ? "a"
SELECT id FROM l WHERE t LIKE ALL (ARRAY['a%', '%e']); -- refused LIKE ALL

== order and equality of strings
SELECT 'a' < 'B';
SELECT 'a' < 'b';
SELECT 'A' < 'a';
SELECT 'a' = 'A';
SELECT 'é' > 'z';
SELECT '' < 'a';
SELECT 'a' < 'aa';
SELECT 'a ' = 'a';
SELECT 'Z' < '[', 'z' < '{';
CREATE TABLE s (t text);
INSERT INTO s VALUES ('b'), ('A'), ('a'), ('B'), ('_'), ('1'), ('10'), ('2'), (''), ('é'), ('日'), ('🙂'), (NULL);
SELECT t FROM s ORDER BY t;
SELECT t FROM s ORDER BY t DESC;
SELECT t FROM s ORDER BY lower(t), t;
SELECT min(t), max(t) FROM s;
SELECT t FROM s ORDER BY t COLLATE "C";
SELECT t FROM s ORDER BY t COLLATE nocase; -- documented sqlite-syntax
SELECT t FROM s ORDER BY t COLLATE "nosuch";
SELECT count(DISTINCT lower(t)) FROM s;
SELECT t FROM s WHERE t > 'a' ORDER BY t;
SELECT t FROM s WHERE t BETWEEN 'A' AND 'b' ORDER BY t;
SELECT t FROM s WHERE t = 'a';
SELECT t FROM s WHERE t IN ('A', 'b') ORDER BY t;

== text with a length
CREATE TABLE w (a varchar(3), b char(3), c character varying(5), d character(2));
INSERT INTO w VALUES ('abc', 'ab', 'hello', 'x');
INSERT INTO w (a) VALUES ('abcd');
INSERT INTO w (b) VALUES ('abcd');
INSERT INTO w (c) VALUES ('toolong');
INSERT INTO w (a) VALUES ('日本語');
SELECT a, b, c, d FROM w; -- documented char-padding
SELECT b || '|' FROM w;
SELECT length(b), length(d) FROM w;
SELECT b = 'ab', b = 'ab ' FROM w; -- documented char-padding
UPDATE w SET a = a || 'x';
