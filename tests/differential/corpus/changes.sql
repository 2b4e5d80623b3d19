== insert
CREATE TABLE t (id int PRIMARY KEY, a text DEFAULT 'x', b int DEFAULT 5, c text);
INSERT INTO t (id) VALUES (1);
INSERT INTO t VALUES (2, 'y', 6, 'z');
INSERT INTO t (id, a) VALUES (5, NULL);
INSERT INTO t (id, c) SELECT id + 10, a FROM t WHERE id < 3;
INSERT INTO t (id) VALUES (20) RETURNING *;
INSERT INTO t (id) VALUES (21), (22) RETURNING id, a || '!' AS e;
INSERT INTO t (id) VALUES (23) RETURNING id + 1;
INSERT INTO t DEFAULT VALUES;
INSERT INTO t (id, a) VALUES (1, 'dup');
INSERT INTO t (id, nosuch) VALUES (30, 1);
INSERT INTO t (id, a) VALUES (30);
INSERT INTO t (id) VALUES (30, 31);
INSERT INTO t VALUES (30, 'a', 1, 'c', 'd');
INSERT INTO nosuch VALUES (1);
INSERT INTO t (id) VALUES (NULL);
INSERT INTO t (id, b) VALUES (40, (SELECT max(b) FROM t)) RETURNING b;
INSERT INTO t (id) VALUES (50), (51), (50);
SELECT * FROM t ORDER BY id;
INSERT INTO t (id) SELECT id FROM t WHERE false;

== insert with defaults and aliases
CREATE TABLE t (id int PRIMARY KEY, a text DEFAULT 'x', b int DEFAULT 5);
INSERT INTO t VALUES (3);
INSERT INTO t VALUES (4, DEFAULT, DEFAULT); -- refused DEFAULT
INSERT INTO t (id, a) VALUES (5, NULL), (6, DEFAULT); -- refused DEFAULT
INSERT INTO t AS x (id) VALUES (41) RETURNING x.id;
INSERT INTO public.t (id) VALUES (60);
SELECT count(*) > 0 FROM t;

== insert in words of sqlite
CREATE TABLE t (id int PRIMARY KEY, a text DEFAULT 'x');
INSERT OR REPLACE INTO t (id) VALUES (1); -- documented sqlite-syntax
INSERT OR IGNORE INTO t (id) VALUES (1); -- documented sqlite-syntax
REPLACE INTO t (id) VALUES (1); -- documented sqlite-syntax
INSERT INTO t (id, id) VALUES (30, 31);

== update
CREATE TABLE t (id int PRIMARY KEY, a text, b int NOT NULL DEFAULT 1);
CREATE TABLE s (id int, v text);
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3);
INSERT INTO s VALUES (1, 's1'), (2, 's2'), (9, 's9');
UPDATE t SET a = 'z' WHERE id = 1;
UPDATE t SET a = 'z' WHERE id = 100;
UPDATE t SET b = b + 1;
UPDATE t SET a = 'q', b = 10 WHERE id = 2 RETURNING *;
UPDATE t SET (a, b) = ('r', 11) WHERE id = 2 RETURNING a, b;
UPDATE t SET (a, b) = (SELECT 'w', 12) WHERE id = 2 RETURNING a, b;
UPDATE t SET a = b, b = 20 WHERE id = 3 RETURNING a, b;
UPDATE t SET a = s.v FROM s WHERE s.id = t.id;
UPDATE t SET b = NULL WHERE id = 1;
UPDATE t SET id = 1 WHERE id = 2;
UPDATE t SET id = id + 1;
UPDATE t SET id = id + 10;
UPDATE t SET nosuch = 1;
UPDATE nosuch SET a = 1;
UPDATE t SET a = (SELECT v FROM s WHERE s.id = t.id - 11);
UPDATE t SET t.a = 'x'; -- documented sqlstates
UPDATE t SET a = 'x' ORDER BY id LIMIT 1;
UPDATE t SET a = upper(a) WHERE a IS NOT NULL RETURNING id, a;
SELECT * FROM t ORDER BY id;

== update with aliases and defaults
CREATE TABLE t (id int PRIMARY KEY, a text, b int NOT NULL DEFAULT 1);
INSERT INTO t VALUES (1, 'a', 5);
UPDATE t AS x SET a = 'al' WHERE x.id = 1;
UPDATE t AS x SET a = 'al' WHERE x.id = 1 RETURNING x.a;
UPDATE t SET b = DEFAULT WHERE id = 1 RETURNING b; -- refused DEFAULT
UPDATE t SET a = 'one', a = 'two';

== delete with using
CREATE TABLE t (id int PRIMARY KEY, a text);
CREATE TABLE s (id int);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT INTO s VALUES (2);
DELETE FROM t USING s WHERE t.id = s.id;
DELETE FROM t USING s WHERE t.id = s.id RETURNING t.id; -- refused DELETE
TRUNCATE t;
TRUNCATE TABLE t, s;

== delete
CREATE TABLE t (id int PRIMARY KEY, a text);
CREATE TABLE s (id int);
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e');
INSERT INTO s VALUES (4);
DELETE FROM t WHERE id = 1;
DELETE FROM t WHERE id = 100;
DELETE FROM t WHERE id = 2 RETURNING *;
DELETE FROM t AS x WHERE x.id = 3;
DELETE FROM t WHERE a IN (SELECT 'e');
DELETE FROM t;
DELETE FROM nosuch;
DELETE FROM t LIMIT 1;

== on conflict
CREATE TABLE t (id int PRIMARY KEY, k text UNIQUE, v int, n int DEFAULT 0);
INSERT INTO t (id, k, v) VALUES (1, 'a', 10), (2, 'b', 20);
INSERT INTO t (id, k, v) VALUES (1, 'z', 1) ON CONFLICT DO NOTHING;
INSERT INTO t (id, k, v) VALUES (1, 'z', 1) ON CONFLICT (id) DO NOTHING;
INSERT INTO t (id, k, v) VALUES (3, 'a', 1) ON CONFLICT (id) DO NOTHING;
CREATE TABLE narrow (id int PRIMARY KEY, v varchar(3), n numeric(3,1), d date);
INSERT INTO narrow (id, v) VALUES (1, 'abc');
INSERT INTO narrow (id, v) VALUES (1, 'abcd') ON CONFLICT DO NOTHING; -- documented texts-of-skipped-rows
INSERT INTO narrow (id, n) VALUES (1, 1000) ON CONFLICT (id) DO NOTHING;
INSERT INTO narrow (id, d) VALUES (1, 'never') ON CONFLICT DO NOTHING;
INSERT INTO narrow (id, v) VALUES (1, 'abcd') ON CONFLICT (id) DO UPDATE SET v = 'x'; -- documented texts-of-skipped-rows
INSERT INTO narrow (id, v) VALUES (1, 'abcd') ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO narrow (id, v) VALUES (2, 'abcd') ON CONFLICT DO NOTHING;
INSERT INTO t (id, k, v) VALUES (1, 'z', 11) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO t (id, k, v) VALUES (1, 'z', 5) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v, n = t.n + 1 RETURNING *;
INSERT INTO t (id, k, v) VALUES (9, 'b', 21) ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v RETURNING id, v;
INSERT INTO t (id, k, v) VALUES (2, 'q', 99) ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE t.v > 1000;
INSERT INTO t (id, k, v) VALUES (2, 'q', 99) ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE t.v < 1000 RETURNING v;
INSERT INTO t (id, k, v) VALUES (2, 'q', 98), (7, 's', 70) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO t (id, k, v) VALUES (6, 'x', 1), (6, 'y', 2) ON CONFLICT DO NOTHING;
INSERT INTO t (id, k, v) VALUES (1, 'z', 1) ON CONFLICT (v) DO NOTHING;
INSERT INTO t (id, k, v) VALUES (1, 'z', 1) ON CONFLICT (nosuch) DO NOTHING;
INSERT INTO t (id, k, v) SELECT 1, 'zz', 77 WHERE true ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING v;
INSERT INTO t (id, k) VALUES (1, 'z') ON CONFLICT (id) DO UPDATE SET (v, n) = (1, 2) RETURNING v, n;
SELECT * FROM t ORDER BY id;

== on conflict, rarer forms
CREATE TABLE t (id int PRIMARY KEY, k text UNIQUE, v int);
INSERT INTO t (id, k, v) VALUES (1, 'a', 10), (2, 'b', 20);
INSERT INTO t (id, k, v) VALUES (1, 'z', 1) ON CONFLICT DO UPDATE SET v = 1; -- documented conflict-targets
INSERT INTO t (id, k) VALUES (1, 'z') ON CONFLICT (id) DO UPDATE SET v = DEFAULT RETURNING v; -- refused DEFAULT
INSERT INTO t (id, k, v) SELECT id, k, v + 1 FROM t ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO t (id, k, v) VALUES (1, 'z', 1) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING; -- refused ON CONFLICT ON CONSTRAINT
INSERT INTO t (id, k, v) VALUES (1, 'z', 1) ON CONFLICT ON CONSTRAINT nosuch DO NOTHING; -- documented conflict-targets
INSERT INTO t (id, k, v) VALUES (1, 'z', 1) ON CONFLICT (id) DO UPDATE SET v = v + 1; -- documented conflict-targets
INSERT INTO t (id, k, v) VALUES (5, 'u', 1), (5, 'w', 2) ON CONFLICT (id) DO UPDATE SET v = excluded.v;

== on conflict with several columns
CREATE TABLE p (a int, b int, c int);
CREATE UNIQUE INDEX p_ab ON p (a, b);
CREATE UNIQUE INDEX p_c ON p (c) WHERE c > 0;
INSERT INTO p VALUES (1, 1, 1);
INSERT INTO p VALUES (1, 1, 2) ON CONFLICT (a, b) DO UPDATE SET c = 9 RETURNING c;
INSERT INTO p VALUES (1, 1, 2) ON CONFLICT (b, a) DO NOTHING;
INSERT INTO p VALUES (2, 2, 9) ON CONFLICT (c) WHERE c > 0 DO UPDATE SET b = 100 RETURNING *;
INSERT INTO p VALUES (2, 2, 9) ON CONFLICT (c) DO NOTHING;
INSERT INTO p VALUES (NULL, 1, 0), (NULL, 1, 0);
SELECT count(*) FROM p;

== constraints
CREATE TABLE p (id int PRIMARY KEY, code text NOT NULL UNIQUE, qty int CHECK (qty > 0), CONSTRAINT named CHECK (code <> 'bad'));
INSERT INTO p VALUES (1, 'a', 1);
INSERT INTO p VALUES (1, 'b', 1);
INSERT INTO p VALUES (2, 'a', 1);
INSERT INTO p VALUES (3, NULL, 1);
INSERT INTO p VALUES (4, 'd', 0);
INSERT INTO p VALUES (5, 'e', NULL);
INSERT INTO p VALUES (6, 'bad', 1);
UPDATE p SET qty = -1;
UPDATE p SET code = NULL WHERE id = 1;
UPDATE p SET code = 'e' WHERE id = 1;
CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p (id), q int REFERENCES p);
INSERT INTO c VALUES (1, 1, 1), (2, NULL, NULL);
INSERT INTO c VALUES (3, 99, NULL);
INSERT INTO c VALUES (4, NULL, 99);
UPDATE c SET p = 99 WHERE id = 1;
DELETE FROM p WHERE id = 1;
DELETE FROM p WHERE id = 5;
UPDATE p SET id = 50 WHERE id = 1;
DROP TABLE p;
CREATE TABLE d1 (id int PRIMARY KEY, p int REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE d2 (id int PRIMARY KEY, p int REFERENCES p (id) ON DELETE SET NULL);
CREATE TABLE d3 (id int PRIMARY KEY, p int DEFAULT 10 REFERENCES p (id) ON DELETE SET DEFAULT);
INSERT INTO p VALUES (10, 'ten', 1), (11, 'eleven', 1);
INSERT INTO d1 VALUES (1, 11);
INSERT INTO d2 VALUES (1, 11);
INSERT INTO d3 VALUES (1, 11);
DELETE FROM p WHERE id = 11;
SELECT * FROM d1;
SELECT * FROM d2;
SELECT * FROM d3;
CREATE TABLE u (a int, b int, UNIQUE (a, b));
INSERT INTO u VALUES (1, NULL), (1, NULL), (1, 1);
INSERT INTO u VALUES (1, 1);
CREATE TABLE k (a int, b int, PRIMARY KEY (a, b));
INSERT INTO k VALUES (1, 1);
INSERT INTO k VALUES (1, 1);
INSERT INTO k VALUES (1, NULL);
CREATE TABLE e (id int PRIMARY KEY, a int, b int, CHECK (a < b));
INSERT INTO e VALUES (1, 1, 2);
INSERT INTO e VALUES (2, 2, 1);
INSERT INTO e VALUES (3, NULL, 1);
CREATE TABLE f (a int REFERENCES nosuch (id)); -- documented missing-relations
CREATE TABLE f2 (a int REFERENCES p (qty)); -- documented missing-relations

== deferred constraints
CREATE TABLE p (id int PRIMARY KEY);
CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO c VALUES (1, 5);
BEGIN;
INSERT INTO c VALUES (1, 5);
INSERT INTO p VALUES (5);
COMMIT;
SELECT * FROM c;
BEGIN;
INSERT INTO c VALUES (2, 6);
COMMIT;
SELECT * FROM c;
SET CONSTRAINTS ALL IMMEDIATE;

== numbering
CREATE TABLE s (id serial PRIMARY KEY, v text);
INSERT INTO s (v) VALUES ('a'), ('b') RETURNING id;
INSERT INTO s (id, v) VALUES (DEFAULT, 'c') RETURNING id;
INSERT INTO s VALUES (10, 'd') RETURNING id;
INSERT INTO s (v) VALUES ('e') RETURNING id > 0;
DELETE FROM s WHERE v = 'e';
CREATE TABLE b (id bigserial, v int, PRIMARY KEY (id));
INSERT INTO b (v) VALUES (7) RETURNING *;
CREATE TABLE b2 (id smallserial PRIMARY KEY, v int);
INSERT INTO b2 (v) VALUES (7) RETURNING *;
CREATE TABLE i (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int);
INSERT INTO i (v) VALUES (1), (2) RETURNING id;
CREATE TABLE j (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v int);
INSERT INTO j (v) VALUES (1) RETURNING id;
INSERT INTO j (id, v) VALUES (100, 2) RETURNING id;
CREATE TABLE k (id int PRIMARY KEY, v int);
INSERT INTO k (v) VALUES (1);
CREATE TABLE m (id serial PRIMARY KEY);
INSERT INTO m DEFAULT VALUES RETURNING id;
INSERT INTO m DEFAULT VALUES RETURNING id;

== numbering, rarer forms
CREATE TABLE n (v text, num serial); -- refused num
CREATE TABLE k2 (id integer PRIMARY KEY, v int);
INSERT INTO k2 (v) VALUES (1); -- documented integer-primary-key
INSERT INTO k2 VALUES (NULL, 1); -- documented integer-primary-key
CREATE TABLE s (id serial PRIMARY KEY, v text);
INSERT INTO s (id) VALUES (NULL); -- documented integer-primary-key
CREATE TABLE i (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int);
INSERT INTO i (id, v) VALUES (9, 9); -- documented integer-primary-key
INSERT INTO i (id, v) OVERRIDING SYSTEM VALUE VALUES (9, 9); -- documented integer-primary-key
CREATE SEQUENCE q; -- refused CREATE SEQUENCE
SELECT nextval('q'); -- refused nextval
SELECT lastval(); -- refused lastval

== generated columns
CREATE TABLE g (a int, b int GENERATED ALWAYS AS (a * 2) STORED);
INSERT INTO g (a) VALUES (1), (2) RETURNING b;
INSERT INTO g (a, b) VALUES (1, 5);
UPDATE g SET a = 10 WHERE a = 1 RETURNING a, b;
UPDATE g SET b = 1;
SELECT * FROM g ORDER BY a;

== views
CREATE TABLE t (id int PRIMARY KEY, a text);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
CREATE VIEW v AS SELECT id, upper(a) AS u FROM t WHERE id > 1;
SELECT * FROM v;
SELECT u || 'x' AS y FROM v;
CREATE VIEW v AS SELECT 1;
INSERT INTO v VALUES (3, 'c'); -- documented sqlstates
CREATE VIEW w (x, y) AS SELECT id, a FROM t;
SELECT x, y FROM w ORDER BY x;
DROP VIEW w;
DROP VIEW nosuch;
DROP VIEW IF EXISTS nosuch;
DROP TABLE v;
CREATE OR REPLACE VIEW v AS SELECT id, upper(a) AS u FROM t; -- refused CREATE OR REPLACE VIEW
CREATE VIEW z AS SELECT * FROM nosuch;
DROP TABLE t;
CREATE MATERIALIZED VIEW mv AS SELECT 1 AS a; -- refused CREATE MATERIALIZED VIEW
