-- Views: their own expressions, and queries over their columns.

== computed columns of a view
create table o (id bigint primary key, cust text, amount numeric(10,2), odate date, paid boolean, placed timestamptz);
insert into o values (1,'ann',20.00,'2024-01-15',true,'2024-01-15 10:00+00'),(2,'ann',5.50,'2024-03-01',false,'2024-03-01 10:00+00'),(3,'bob',10.10,'2023-12-31',true,'2023-12-31 10:00+00');
create view last_orders as select cust, max(odate) as last_order, min(placed) as first_at, sum(amount) as total, count(*) as n, max(amount) as top from o group by cust;
select cust, last_order, total from last_orders order by cust;
select cust, last_order + 30 as due from last_orders order by cust;
select cust from last_orders where last_order > '2024-1-5' order by cust;
select cust from last_orders where last_order = '2024-3-1';
select cust, last_order - date '2024-01-01' as days from last_orders order by cust;
select cust, extract(month from last_order) from last_orders order by cust;
select cust, date_trunc('month', last_order) from last_orders order by cust;
select cust, total / 3 as third, total / n as avg from last_orders order by cust; -- documented numeric-scale
select cust, top / 3 from last_orders order by cust;
select cust, total * 1.1 from last_orders order by cust;
select cust from last_orders where total = 25.5;
select cust from last_orders where total > '20' order by cust;
select sum(total) from last_orders;
select cust, first_at from last_orders order by cust;
select cust from last_orders where first_at < '2024-1-1' order by cust;
select cust, first_at::date from last_orders order by cust;
select l.cust, o.id from last_orders l join o on o.cust=l.cust and o.odate = l.last_order order by 1;
select cust, total::int from last_orders order by cust;
select cust, total || '' from last_orders order by cust;
select cust, case when total > 20 then 'big' else 'small' end from last_orders order by cust;
select max(last_order), min(first_at) from last_orders;
create view flags as select id, amount > 10 as big, amount > 10 and paid as big_paid, upper(cust) as c, odate + 0 as d2 from o;
select * from flags order by id;
select id from flags where big order by id;
select id from flags where not big order by id;
select bool_and(big), count(*) filter (where big) from flags;
create view simple as select id, cust, amount, odate, paid, placed from o where paid;
select * from simple order by id;
select odate + 1, amount / 3, placed::date from simple order by id;
select id from simple where odate > '2024-1-5';

== plain columns, casts and queries within views
create table zz (id bigint primary key, a text, n numeric(10,2), d date);
insert into zz values (1,'x',20.00,'2024-01-15'),(2,'y',10.10,'2024-02-01');
create view zv as select id, a, n, d from zz;
select n / 3 from zv order by id;
select d + 1 from zv where d > '2024-1-20';
create view zw as select z.id as i, z.n as m, z.d as e from zz z join zz y on y.id = z.id;
select m / 3, e + 1 from zw where e > '2024-1-5' order by i;
create view zx as select * from zz union all select id + 10, a, n, d from zz;
select n / 3, d + 1 from zx where d > '2024-1-20' order by id;
create view zy as select (select max(d) from zz) as md, (select n from zz where id = 1) as n1;
select md + 1, n1 / 3 from zy;
create view za as with q as (select id, n, d from zz) select * from q;
select n / 3, d + 1 from za order by id;
create view zb as select id, cast(n * 2 as numeric(12,2)) as n2, cast(d as date) as d2 from zz;
select n2, n2 / 3 from zb order by id;
select d2 + 1 from zb order by id;
create view zc as select i, m from zw;
select m / 3 from zc order by i;
create view zd (k, v) as select id, d from zz;
select v + 1 from zd where v > '2024-1-20';
create view ze as select distinct d from zz;
select d + 1 from ze order by d;
create view zf as select d, count(*) c from zz group by d;
select d + 1, c / 3 from zf where d > '2024-1-20';
create view zg as select z.*, y.n as yn from zz z left join zz y on y.id = z.id + 1;
select yn / 3, n / 3, d + 1 from zg order by id;

== views of numbers, texts and times
CREATE TABLE t (id int PRIMARY KEY, i int, n numeric(10,2), f float8, s varchar(9), b boolean, d date, ts timestamp, tz timestamptz, u uuid, j jsonb);
INSERT INTO t VALUES (1, 7, 20.00, 1.5, 'abc', true, '2024-01-05', '2024-01-05 10:00', '2024-01-05 10:00+02', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1}'), (2, -3, 10.10, 2, 'ABC', false, '2024-02-29', '2024-02-29 00:00', '2024-02-29 00:00+00', NULL, NULL), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE VIEW v AS SELECT id, i / 2 AS half, i * 2 AS twice, n * 2 AS m, f / 2 AS g, s || '!' AS shout, NOT b AS nb, d - 1 AS e, ts::date AS day, tz::text AS shown, coalesce(i, 0) AS c, CASE WHEN b THEN n ELSE 0.5 END AS pick, s LIKE 'a%' AS a FROM t;
SELECT * FROM v WHERE id < 3 ORDER BY id; -- documented numeric-scale
SELECT id, half, twice, m, g, shout, nb, e, day, shown, c, a FROM v ORDER BY id;
SELECT half / 2, m / 4 * 4 = m, g / 2, shout LIKE 'A%', e + 1, day = '2024-1-5' FROM v ORDER BY id;
SELECT id FROM v WHERE m > $1 AND e > $2 AND nb = $3 AND g < $4 ORDER BY id; -- with ? "5", ? "2023-1-1", ? "t", ? "10"
SELECT id FROM v WHERE m > $1 ORDER BY id; -- with numeric "20.5"
SELECT id FROM v WHERE e = $1; -- with date "2024-01-04"
SELECT id FROM v WHERE a AND half IN (3, 4) AND day BETWEEN '2024-1-1' AND '2024-1-31';
SELECT a, count(*), sum(m), max(e), min(shout) FROM v GROUP BY a ORDER BY a;
SELECT v.id, t.id FROM v JOIN t ON t.d - 1 = v.e AND t.n * 2 = v.m ORDER BY 1;
CREATE VIEW w AS SELECT v.*, v.m / 3 AS third FROM v WHERE e < '2024-2-1';
SELECT third, m, e FROM w;
CREATE TABLE k AS SELECT id, half, twice, m, g, shout, nb, e, day, shown, c, a FROM v; -- documented tags
SELECT * FROM k ORDER BY id; -- documented numeric-scale
SELECT e + 1, m / 3, nb FROM k WHERE e > '2024-1-3' ORDER BY id;
INSERT INTO t (id, n, d) SELECT id + 10, m, e FROM v WHERE id < 3;
SELECT id, n, d FROM t WHERE id > 10 ORDER BY id;
UPDATE t SET n = (SELECT m FROM v WHERE v.id = 1) WHERE id = 2;
DELETE FROM t WHERE d IN (SELECT e FROM v WHERE id = 1);
SELECT id, n FROM t ORDER BY id;
CREATE VIEW x AS SELECT i, i FROM t;
CREATE VIEW x (a, b, c) AS SELECT i, n FROM t;
CREATE VIEW x AS SELECT n || $1 FROM t;
CREATE VIEW x AS SELECT i = s FROM t;
CREATE VIEW x AS SELECT i, max(n) FROM t;
CREATE VIEW x (a) AS SELECT i, n FROM t ORDER BY 1;
SELECT * FROM x ORDER BY a;
ALTER TABLE t ADD COLUMN later int;
CREATE VIEW y AS SELECT * FROM t;
ALTER TABLE t ADD COLUMN latest int;
SELECT * FROM y WHERE id = 3;
ALTER TABLE t RENAME COLUMN later TO sooner;
SELECT later FROM y WHERE id = 3;
ALTER TABLE t ALTER COLUMN i TYPE text;
DROP TABLE t;
