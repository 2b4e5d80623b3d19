== columns of dates and times
CREATE TABLE d (id int PRIMARY KEY, d date, t time, s timestamp, z timestamptz);
INSERT INTO d VALUES (1, '2020-02-29', '01:02:03', '2020-02-29 01:02:03', '2020-02-29 01:02:03+00');
INSERT INTO d VALUES (2, '1999-12-31', '23:59:59.999999', '1999-12-31 23:59:59.999999', '1999-12-31 18:29:59.500000+00:00');
INSERT INTO d VALUES (3, '2020-01-05', '01:02:00', '2020-01-05 10:00:00', '2020-01-05 10:00:00+00:00');
INSERT INTO d VALUES (4, NULL, NULL, NULL, NULL);
INSERT INTO d VALUES ($1, $2, $3, $4, $5); -- with ? 15, ? "2020-02-29", ? "01:02:03", ? "2020-02-29 01:02:03", ? "2020-02-29 01:02:03+00"
INSERT INTO d VALUES ($1, $2, $3, $4, $5); -- with ? 5, ? "2020-02-28", ? "01:02:04", ? "2020-02-28 01:02:03.25", ? "2020-02-28 01:02:03+05:30"
INSERT INTO d VALUES (6, '2021-02-29', NULL, NULL, NULL);
INSERT INTO d VALUES (6, 'nonsense', NULL, NULL, NULL);
INSERT INTO d VALUES (7, NULL, '24:01', NULL, NULL);
INSERT INTO d VALUES (8, NULL, NULL, 'x', NULL);
INSERT INTO d VALUES (9, NULL, NULL, NULL, 'x');
INSERT INTO d VALUES (11, 5, NULL, NULL, NULL);
SELECT * FROM d ORDER BY id;
SELECT id FROM d WHERE d IS NOT NULL ORDER BY d, id;
SELECT id FROM d WHERE s IS NOT NULL ORDER BY s, id;
SELECT id FROM d WHERE z IS NOT NULL ORDER BY z, id;
SELECT min(d), max(d), min(s), max(z), count(t) FROM d WHERE id IN (1, 2, 3);
SELECT id FROM d WHERE d = '2020-02-29';
SELECT id FROM d WHERE d >= '2020-01-05' AND d < '2021-01-01' ORDER BY id;
SELECT id FROM d WHERE s = '2020-01-05 10:00';
SELECT id FROM d WHERE s = '2020-01-05T10:00:00';
SELECT id FROM d WHERE z = '2020-01-05 12:00:00+02';
SELECT id FROM d WHERE z > '2020-01-05 11:00:00+02' ORDER BY id;
SELECT id FROM d WHERE t < '02:00' ORDER BY id;
SELECT id FROM d WHERE d = $1; -- with ? "2020-02-29"
SELECT id FROM d WHERE d = $1; -- with date "2020-02-29"
SELECT id FROM d WHERE s = $1; -- with timestamp "2020-01-05 10:00:00"
SELECT id FROM d WHERE z = $1; -- with timestamptz "2020-01-05 12:00:00+02"
SELECT id FROM d WHERE z = $1; -- with ? "2020-01-05 12:00:00+02"
SELECT id FROM d WHERE t = $1; -- with time "01:02:03"
SELECT d::text, t::text, s::text, z::text FROM d WHERE id IN (1, 2) ORDER BY id;
SELECT s::date, z::date, s::time, d::timestamp, d::timestamptz FROM d WHERE id IN (1, 2) ORDER BY id;
SELECT d || 'x' FROM d WHERE id = 1;
SELECT count(DISTINCT d) FROM d;
SELECT d, count(*) FROM d WHERE id < 4 GROUP BY d ORDER BY d;
UPDATE d SET d = s WHERE id = 2 RETURNING d;
UPDATE d SET s = d WHERE id = 3 RETURNING s;
UPDATE d SET z = s WHERE id = 3 RETURNING z;

== other forms of dates and times
CREATE TABLE d (id int PRIMARY KEY, d date, t time, s timestamp, z timestamptz);
INSERT INTO d (id, d) VALUES (1, '2020-1-5');
INSERT INTO d (id, d) VALUES (2, '20200105');
INSERT INTO d (id, d) VALUES (3, '2020-01-02 10:00:00');
INSERT INTO d (id, d) VALUES (4, '0044-03-15 BC'); -- refused date '0044-03-15 BC': years before 1
INSERT INTO d (id, d) VALUES (5, 'infinity'); -- refused the date 'infinity'
INSERT INTO d (id, d) VALUES (6, '12000-01-01'); -- documented moments-in-words
INSERT INTO d (id, d) VALUES (7, 'January 8, 1999'); -- documented moments-in-words
INSERT INTO d (id, d) VALUES (8, 'today'); -- refused the date 'today'
INSERT INTO d (id, t) VALUES (10, '1:02');
INSERT INTO d (id, t) VALUES (11, '01:02');
INSERT INTO d (id, t) VALUES (12, '0102'); -- documented moments-in-words
INSERT INTO d (id, t) VALUES (13, '04:05 PM'); -- documented moments-in-words
INSERT INTO d (id, t) VALUES (14, '2020-01-02 10:00:00');
INSERT INTO d (id, s) VALUES (20, '2020-01-05T10:00:00');
INSERT INTO d (id, s) VALUES (21, '2020-01-05');
INSERT INTO d (id, s) VALUES (22, '2020-01-05 10:00');
INSERT INTO d (id, s) VALUES (23, '2020-01-02 10:00:00+05');
INSERT INTO d (id, s) VALUES (24, '2020-01-01 24:00:00');
INSERT INTO d (id, s) VALUES (25, '2020-01-01 10:00:00.1234567');
INSERT INTO d (id, s) VALUES (26, '2020-01-01 10:00:60'); -- documented moments-in-words
INSERT INTO d (id, s) VALUES (27, '-infinity'); -- refused the timestamp '-infinity'
INSERT INTO d (id, z) VALUES (30, '2020-01-05T10:00:00Z');
INSERT INTO d (id, z) VALUES (31, '2020-01-05');
INSERT INTO d (id, z) VALUES (32, '2020-01-02 10:00:00');
INSERT INTO d (id, z) VALUES (33, '2020-01-02 10:00:00+02');
INSERT INTO d (id, z) VALUES (34, '2020-01-02 10:00:00 Europe/Berlin'); -- refused timestamp with time zone '2020-01-02 10:00:00 Europe/Berlin': names of time zones
SELECT count(*) FROM d WHERE id > 100;

== arithmetic
SELECT '2020-03-01'::date - '2020-02-01'::date;
SELECT '2020-02-28'::date + 2;
SELECT '2020-03-01'::date - 1;
SELECT '2020-01-31'::date + interval '1 month'; -- refused type interval
SELECT '2020-01-01'::timestamp - '2019-12-31 12:00'::timestamp; -- refused interval
SELECT '2020-01-01 00:00'::timestamp + interval '1 hour'; -- refused interval
SELECT '2020-01-01'::date + '10:00'::time; -- refused interval
CREATE TABLE a (d date, s timestamp);
INSERT INTO a VALUES ('2020-03-01', '2020-03-01 12:00:00');
SELECT d + 1 FROM a;
SELECT d - 1 FROM a;
SELECT 1 + d FROM a;
SELECT d - d FROM a;
SELECT s - s FROM a; -- refused interval
SELECT d + d FROM a; -- documented sqlstates
SELECT s + 1 FROM a; -- documented sqlstates
SELECT d * 2 FROM a; -- documented sqlstates
SELECT -d FROM a;
SELECT sum(d) FROM a;
SELECT avg(s) FROM a;
SELECT d / 2 FROM a; -- documented sqlstates
SELECT d > 5 FROM a;

== functions
SELECT extract(year FROM '2020-02-03'::date);
SELECT extract(month FROM timestamp '2020-02-03 04:05:06');
SELECT extract(dow FROM '2020-02-03'::date);
SELECT extract(epoch FROM '1970-01-02'::date);
SELECT date_part('day', '2020-02-03'::date);
SELECT date_trunc('month', '2020-02-03 04:05:06'::timestamp);
SELECT date_trunc('hour', '2020-02-03 04:05:06'::timestamp);
SELECT age('2020-02-03'::date, '2019-01-01'::date); -- refused age
SELECT to_timestamp(0);
SELECT make_date(2020, 1, 2); -- refused make_date
SELECT '2020-01-01 00:00+00'::timestamptz AT TIME ZONE 'UTC';
SELECT '2020-01-01 00:00'::timestamp AT TIME ZONE 'UTC';
SELECT now() > '2020-01-01';
SELECT now() = now();
SELECT current_date > '2020-01-01'::date;
SELECT current_timestamp > '2020-01-01';
SELECT current_date = now()::date;
SELECT localtimestamp > '2020-01-01';
SELECT pg_typeof(now()); -- refused pg_typeof
SELECT clock_timestamp() >= now();
SELECT date('2020-01-02'); -- documented sqlite-functions
SELECT date('2020-01-02', '+1 day'); -- documented sqlite-functions
SELECT datetime('2020-01-02'); -- documented sqlite-functions
SELECT strftime('%Y', '2020-01-02'); -- documented sqlite-functions
SELECT julianday('2020-01-02'); -- documented sqlite-functions
SELECT unixepoch('2020-01-02'); -- documented sqlite-functions
SELECT time('10:00'); -- documented sqlite-functions
CREATE TABLE c (id int, a timestamp DEFAULT now(), b timestamptz DEFAULT current_timestamp, c date DEFAULT current_date, d timestamp DEFAULT CURRENT_TIMESTAMP);
INSERT INTO c (id) VALUES (1);
SELECT a > '2020-01-01', b > '2020-01-01', c > '2020-01-01', d > '2020-01-01' FROM c;
SELECT c = b::date FROM c;
SELECT a = d FROM c;

== the present day as a moment is its midnight
SELECT date_trunc('day', now()) = current_date::timestamptz;
SELECT current_date::timestamp = localtimestamp::date::timestamp;
SELECT CAST(current_date AS timestamptz)::time;
CREATE TABLE m (a timestamptz, b timestamp, c date);
INSERT INTO m VALUES (current_date, current_date, now());
SELECT a = c::timestamptz, b = c::timestamp, a::time, b::time FROM m;
UPDATE m SET b = current_date;
SELECT count(*) FROM m WHERE b = current_date AND a <= current_date;

== names of units
SELECT date_trunc('us', timestamp '2024-05-17 13:14:15.678912'), date_part('us', timestamp '2024-05-17 13:14:15.678912'), extract(us FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('usec', timestamp '2024-05-17 13:14:15.678912'), date_part('usec', timestamp '2024-05-17 13:14:15.678912'), extract(usec FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('usecs', timestamp '2024-05-17 13:14:15.678912'), date_part('usecs', timestamp '2024-05-17 13:14:15.678912'), extract(usecs FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('usecond', timestamp '2024-05-17 13:14:15.678912'), date_part('usecond', timestamp '2024-05-17 13:14:15.678912'), extract(usecond FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('useconds', timestamp '2024-05-17 13:14:15.678912'), date_part('useconds', timestamp '2024-05-17 13:14:15.678912'), extract(useconds FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('microsecond', timestamp '2024-05-17 13:14:15.678912'), date_part('microsecond', timestamp '2024-05-17 13:14:15.678912'), extract(microsecond FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('microseconds', timestamp '2024-05-17 13:14:15.678912'), date_part('microseconds', timestamp '2024-05-17 13:14:15.678912'), extract(microseconds FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('ms', timestamp '2024-05-17 13:14:15.678912'), date_part('ms', timestamp '2024-05-17 13:14:15.678912'), extract(ms FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('msec', timestamp '2024-05-17 13:14:15.678912'), date_part('msec', timestamp '2024-05-17 13:14:15.678912'), extract(msec FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('msecs', timestamp '2024-05-17 13:14:15.678912'), date_part('msecs', timestamp '2024-05-17 13:14:15.678912'), extract(msecs FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('msecond', timestamp '2024-05-17 13:14:15.678912'), date_part('msecond', timestamp '2024-05-17 13:14:15.678912'), extract(msecond FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('mseconds', timestamp '2024-05-17 13:14:15.678912'), date_part('mseconds', timestamp '2024-05-17 13:14:15.678912'), extract(mseconds FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('millisecond', timestamp '2024-05-17 13:14:15.678912'), date_part('millisecond', timestamp '2024-05-17 13:14:15.678912'), extract(millisecond FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('milliseconds', timestamp '2024-05-17 13:14:15.678912'), date_part('milliseconds', timestamp '2024-05-17 13:14:15.678912'), extract(milliseconds FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('s', timestamp '2024-05-17 13:14:15.678912'), date_part('s', timestamp '2024-05-17 13:14:15.678912'), extract(s FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('sec', timestamp '2024-05-17 13:14:15.678912'), date_part('sec', timestamp '2024-05-17 13:14:15.678912'), extract(sec FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('secs', timestamp '2024-05-17 13:14:15.678912'), date_part('secs', timestamp '2024-05-17 13:14:15.678912'), extract(secs FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('second', timestamp '2024-05-17 13:14:15.678912'), date_part('second', timestamp '2024-05-17 13:14:15.678912'), extract(second FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('seconds', timestamp '2024-05-17 13:14:15.678912'), date_part('seconds', timestamp '2024-05-17 13:14:15.678912'), extract(seconds FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('m', timestamp '2024-05-17 13:14:15.678912'), date_part('m', timestamp '2024-05-17 13:14:15.678912'), extract(m FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('min', timestamp '2024-05-17 13:14:15.678912'), date_part('min', timestamp '2024-05-17 13:14:15.678912'), extract(min FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('mins', timestamp '2024-05-17 13:14:15.678912'), date_part('mins', timestamp '2024-05-17 13:14:15.678912'), extract(mins FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('minute', timestamp '2024-05-17 13:14:15.678912'), date_part('minute', timestamp '2024-05-17 13:14:15.678912'), extract(minute FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('minutes', timestamp '2024-05-17 13:14:15.678912'), date_part('minutes', timestamp '2024-05-17 13:14:15.678912'), extract(minutes FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('h', timestamp '2024-05-17 13:14:15.678912'), date_part('h', timestamp '2024-05-17 13:14:15.678912'), extract(h FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('hr', timestamp '2024-05-17 13:14:15.678912'), date_part('hr', timestamp '2024-05-17 13:14:15.678912'), extract(hr FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('hrs', timestamp '2024-05-17 13:14:15.678912'), date_part('hrs', timestamp '2024-05-17 13:14:15.678912'), extract(hrs FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('hour', timestamp '2024-05-17 13:14:15.678912'), date_part('hour', timestamp '2024-05-17 13:14:15.678912'), extract(hour FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('hours', timestamp '2024-05-17 13:14:15.678912'), date_part('hours', timestamp '2024-05-17 13:14:15.678912'), extract(hours FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('d', timestamp '2024-05-17 13:14:15.678912'), date_part('d', timestamp '2024-05-17 13:14:15.678912'), extract(d FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('day', timestamp '2024-05-17 13:14:15.678912'), date_part('day', timestamp '2024-05-17 13:14:15.678912'), extract(day FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('days', timestamp '2024-05-17 13:14:15.678912'), date_part('days', timestamp '2024-05-17 13:14:15.678912'), extract(days FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('w', timestamp '2024-05-17 13:14:15.678912'), date_part('w', timestamp '2024-05-17 13:14:15.678912'), extract(w FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('week', timestamp '2024-05-17 13:14:15.678912'), date_part('week', timestamp '2024-05-17 13:14:15.678912'), extract(week FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('weeks', timestamp '2024-05-17 13:14:15.678912'), date_part('weeks', timestamp '2024-05-17 13:14:15.678912'), extract(weeks FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('mon', timestamp '2024-05-17 13:14:15.678912'), date_part('mon', timestamp '2024-05-17 13:14:15.678912'), extract(mon FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('mons', timestamp '2024-05-17 13:14:15.678912'), date_part('mons', timestamp '2024-05-17 13:14:15.678912'), extract(mons FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('month', timestamp '2024-05-17 13:14:15.678912'), date_part('month', timestamp '2024-05-17 13:14:15.678912'), extract(month FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('months', timestamp '2024-05-17 13:14:15.678912'), date_part('months', timestamp '2024-05-17 13:14:15.678912'), extract(months FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('qtr', timestamp '2024-05-17 13:14:15.678912'), date_part('qtr', timestamp '2024-05-17 13:14:15.678912'), extract(qtr FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('quarter', timestamp '2024-05-17 13:14:15.678912'), date_part('quarter', timestamp '2024-05-17 13:14:15.678912'), extract(quarter FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('y', timestamp '2024-05-17 13:14:15.678912'), date_part('y', timestamp '2024-05-17 13:14:15.678912'), extract(y FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('yr', timestamp '2024-05-17 13:14:15.678912'), date_part('yr', timestamp '2024-05-17 13:14:15.678912'), extract(yr FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('yrs', timestamp '2024-05-17 13:14:15.678912'), date_part('yrs', timestamp '2024-05-17 13:14:15.678912'), extract(yrs FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('year', timestamp '2024-05-17 13:14:15.678912'), date_part('year', timestamp '2024-05-17 13:14:15.678912'), extract(year FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('years', timestamp '2024-05-17 13:14:15.678912'), date_part('years', timestamp '2024-05-17 13:14:15.678912'), extract(years FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('dec', timestamp '2024-05-17 13:14:15.678912'), date_part('dec', timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('decs', timestamp '2024-05-17 13:14:15.678912'), date_part('decs', timestamp '2024-05-17 13:14:15.678912'), extract(decs FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('decade', timestamp '2024-05-17 13:14:15.678912'), date_part('decade', timestamp '2024-05-17 13:14:15.678912'), extract(decade FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('decades', timestamp '2024-05-17 13:14:15.678912'), date_part('decades', timestamp '2024-05-17 13:14:15.678912'), extract(decades FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('c', timestamp '2024-05-17 13:14:15.678912'), date_part('c', timestamp '2024-05-17 13:14:15.678912'), extract(c FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('cent', timestamp '2024-05-17 13:14:15.678912'), date_part('cent', timestamp '2024-05-17 13:14:15.678912'), extract(cent FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('century', timestamp '2024-05-17 13:14:15.678912'), date_part('century', timestamp '2024-05-17 13:14:15.678912'), extract(century FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('centuries', timestamp '2024-05-17 13:14:15.678912'), date_part('centuries', timestamp '2024-05-17 13:14:15.678912'), extract(centuries FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('mil', timestamp '2024-05-17 13:14:15.678912'), date_part('mil', timestamp '2024-05-17 13:14:15.678912'), extract(mil FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('mils', timestamp '2024-05-17 13:14:15.678912'), date_part('mils', timestamp '2024-05-17 13:14:15.678912'), extract(mils FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('millennium', timestamp '2024-05-17 13:14:15.678912'), date_part('millennium', timestamp '2024-05-17 13:14:15.678912'), extract(millennium FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('millennia', timestamp '2024-05-17 13:14:15.678912'), date_part('millennia', timestamp '2024-05-17 13:14:15.678912'), extract(millennia FROM timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('MilliSecond', timestamp '2024-05-17 13:14:15.678912');
SELECT date_trunc('quarters', timestamp '2024-05-17 13:14:15');
SELECT date_trunc('epochs', timestamp '2024-05-17 13:14:15');
SELECT date_trunc('days', date '2024-05-17'), extract(years FROM date '2024-05-17'), extract(mins FROM time '13:14:15');
