--
-- PostgreSQL database dump
--

\restrict mCpdoJSbRscrRHYypZaxhh9hxruH387xxtaoUwTy0BIZf0TU0xxQM0pVkSyMScG

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: other; Type: SCHEMA; Schema: -; Owner: tester
--

CREATE SCHEMA other;


ALTER SCHEMA other OWNER TO tester;

--
-- Name: citext; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;


--
-- Name: EXTENSION citext; Type: COMMENT; Schema: -; Owner: 
--

COMMENT ON EXTENSION citext IS 'data type for case-insensitive character strings';


--
-- Name: pgcrypto; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS pgcrypto WITH SCHEMA public;


--
-- Name: EXTENSION pgcrypto; Type: COMMENT; Schema: -; Owner: 
--

COMMENT ON EXTENSION pgcrypto IS 'cryptographic functions';


--
-- Name: mood; Type: TYPE; Schema: public; Owner: tester
--

CREATE TYPE public.mood AS ENUM (
    'good',
    'bad'
);


ALTER TYPE public.mood OWNER TO tester;

--
-- Name: pair; Type: TYPE; Schema: public; Owner: tester
--

CREATE TYPE public.pair AS (
	a integer,
	b integer
);


ALTER TYPE public.pair OWNER TO tester;

--
-- Name: positive; Type: DOMAIN; Schema: public; Owner: tester
--

CREATE DOMAIN public.positive AS integer
	CONSTRAINT positive_check CHECK ((VALUE > 0));


ALTER DOMAIN public.positive OWNER TO tester;

--
-- Name: note(); Type: FUNCTION; Schema: public; Owner: tester
--

CREATE FUNCTION public.note() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
BEGIN
  RAISE NOTICE 'a; b $$';
  RETURN NEW;
END;
$_$;


ALTER FUNCTION public.note() OWNER TO tester;

--
-- Name: thrice(integer); Type: FUNCTION; Schema: public; Owner: tester
--

CREATE FUNCTION public.thrice(n integer) RETURNS integer
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT
         CASE
             WHEN (n > 0) THEN (3 * n)
             ELSE 0
         END AS "case";
 SELECT (3 * n);
END;


ALTER FUNCTION public.thrice(n integer) OWNER TO tester;

--
-- Name: twice(integer); Type: FUNCTION; Schema: public; Owner: tester
--

CREATE FUNCTION public.twice(n integer) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT n * 2; $$;


ALTER FUNCTION public.twice(n integer) OWNER TO tester;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: elsewhere; Type: TABLE; Schema: other; Owner: tester
--

CREATE TABLE other.elsewhere (
    id integer
);


ALTER TABLE other.elsewhere OWNER TO tester;

--
-- Name: alone; Type: SEQUENCE; Schema: public; Owner: tester
--

CREATE SEQUENCE public.alone
    START WITH 1
    INCREMENT BY 5
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.alone OWNER TO tester;

--
-- Name: alone2; Type: SEQUENCE; Schema: public; Owner: tester
--

CREATE SEQUENCE public.alone2
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.alone2 OWNER TO tester;

--
-- Name: arrays; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.arrays (
    id integer NOT NULL,
    tags text[] DEFAULT '{}'::text[],
    span interval,
    spot inet,
    m public.mood,
    p public.positive
);


ALTER TABLE public.arrays OWNER TO tester;

--
-- Name: plain; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.plain (
    id integer NOT NULL,
    n integer,
    price numeric,
    other_id integer NOT NULL,
    name text COLLATE pg_catalog."POSIX",
    cas text
);


ALTER TABLE public.plain OWNER TO tester;

--
-- Name: child; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.child (
    extra text
)
INHERITS (public.plain);


ALTER TABLE public.child OWNER TO tester;

--
-- Name: sums; Type: VIEW; Schema: public; Owner: tester
--

CREATE VIEW public.sums AS
 SELECT sum(plain.price) AS s
   FROM public.plain;


ALTER TABLE public.sums OWNER TO tester;

--
-- Name: of_sums; Type: VIEW; Schema: public; Owner: tester
--

CREATE VIEW public.of_sums AS
 SELECT sums.s
   FROM public.sums;


ALTER TABLE public.of_sums OWNER TO tester;

--
-- Name: parent; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.parent (
    id integer,
    at date
)
PARTITION BY RANGE (at);


ALTER TABLE public.parent OWNER TO tester;

--
-- Name: part; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.part (
    id integer,
    at date
);


ALTER TABLE public.part OWNER TO tester;

--
-- Name: plain_id_seq; Type: SEQUENCE; Schema: public; Owner: tester
--

CREATE SEQUENCE public.plain_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.plain_id_seq OWNER TO tester;

--
-- Name: plain_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: tester
--

ALTER SEQUENCE public.plain_id_seq OWNED BY public.plain.id;


--
-- Name: plain_other_id_seq; Type: SEQUENCE; Schema: public; Owner: tester
--

CREATE SEQUENCE public.plain_other_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.plain_other_id_seq OWNER TO tester;

--
-- Name: plain_other_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: tester
--

ALTER SEQUENCE public.plain_other_id_seq OWNED BY public.plain.other_id;


--
-- Name: stored; Type: MATERIALIZED VIEW; Schema: public; Owner: tester
--

CREATE MATERIALIZED VIEW public.stored AS
 SELECT plain.n
   FROM public.plain
  WITH NO DATA;


ALTER TABLE public.stored OWNER TO tester;

--
-- Name: part; Type: TABLE ATTACH; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.parent ATTACH PARTITION public.part FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');


--
-- Name: child id; Type: DEFAULT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.child ALTER COLUMN id SET DEFAULT nextval('public.plain_id_seq'::regclass);


--
-- Name: child other_id; Type: DEFAULT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.child ALTER COLUMN other_id SET DEFAULT nextval('public.plain_other_id_seq'::regclass);


--
-- Name: plain id; Type: DEFAULT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.plain ALTER COLUMN id SET DEFAULT nextval('public.plain_id_seq'::regclass);


--
-- Name: plain other_id; Type: DEFAULT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.plain ALTER COLUMN other_id SET DEFAULT nextval('public.plain_other_id_seq'::regclass);


--
-- Name: 4711; Type: BLOB; Schema: -; Owner: tester
--

SELECT pg_catalog.lo_create('4711');


ALTER LARGE OBJECT 4711 OWNER TO tester;

--
-- Data for Name: elsewhere; Type: TABLE DATA; Schema: other; Owner: tester
--

COPY other.elsewhere (id) FROM stdin;
\.


--
-- Data for Name: arrays; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.arrays (id, tags, span, spot, m, p) FROM stdin;
\.


--
-- Data for Name: child; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.child (id, n, price, other_id, name, cas, extra) FROM stdin;
\.


--
-- Data for Name: part; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.part (id, at) FROM stdin;
\.


--
-- Data for Name: plain; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.plain (id, n, price, other_id, name, cas) FROM stdin;
1	1	\N	1	\N	\N
\.


--
-- Name: alone; Type: SEQUENCE SET; Schema: public; Owner: tester
--

SELECT pg_catalog.setval('public.alone', 1, false);


--
-- Name: alone2; Type: SEQUENCE SET; Schema: public; Owner: tester
--

SELECT pg_catalog.setval('public.alone2', 1, false);


--
-- Name: plain_id_seq; Type: SEQUENCE SET; Schema: public; Owner: tester
--

SELECT pg_catalog.setval('public.plain_id_seq', 1, true);


--
-- Name: plain_other_id_seq; Type: SEQUENCE SET; Schema: public; Owner: tester
--

SELECT pg_catalog.setval('public.plain_other_id_seq', 1, true);


--
-- Data for Name: BLOBS; Type: BLOBS; Schema: -; Owner: -
--

BEGIN;

SELECT pg_catalog.lo_open('4711', 131072);
SELECT pg_catalog.lo_close(0);

COMMIT;

--
-- Name: arrays arrays_pkey; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.arrays
    ADD CONSTRAINT arrays_pkey PRIMARY KEY (id);


--
-- Name: plain later; Type: CHECK CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE public.plain
    ADD CONSTRAINT later CHECK ((n > 0)) NOT VALID;


--
-- Name: plain no_overlap; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.plain
    ADD CONSTRAINT no_overlap EXCLUDE USING btree (n WITH =);


--
-- Name: plain plain_pkey; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.plain
    ADD CONSTRAINT plain_pkey PRIMARY KEY (id);


--
-- Name: hashed; Type: INDEX; Schema: public; Owner: tester
--

CREATE INDEX hashed ON public.plain USING hash (n);


--
-- Name: words; Type: INDEX; Schema: public; Owner: tester
--

CREATE INDEX words ON public.plain USING gin (to_tsvector('simple'::regconfig, name));


--
-- Name: plain nothing; Type: RULE; Schema: public; Owner: tester
--

CREATE RULE nothing AS
    ON DELETE TO public.plain DO INSTEAD NOTHING;


--
-- Name: plain noted; Type: TRIGGER; Schema: public; Owner: tester
--

CREATE TRIGGER noted BEFORE INSERT ON public.plain FOR EACH ROW EXECUTE FUNCTION public.note();


--
-- Name: plain mine; Type: POLICY; Schema: public; Owner: tester
--

CREATE POLICY mine ON public.plain USING ((n = 1));


--
-- Name: plain; Type: ROW SECURITY; Schema: public; Owner: tester
--

ALTER TABLE public.plain ENABLE ROW LEVEL SECURITY;

--
-- Name: p; Type: PUBLICATION; Schema: -; Owner: tester
--

CREATE PUBLICATION p WITH (publish = 'insert, update, delete, truncate');


ALTER PUBLICATION p OWNER TO tester;

--
-- Name: p child; Type: PUBLICATION TABLE; Schema: public; Owner: tester
--

ALTER PUBLICATION p ADD TABLE ONLY public.child;


--
-- Name: p plain; Type: PUBLICATION TABLE; Schema: public; Owner: tester
--

ALTER PUBLICATION p ADD TABLE ONLY public.plain;


--
-- Name: stored; Type: MATERIALIZED VIEW DATA; Schema: public; Owner: tester
--

REFRESH MATERIALIZED VIEW public.stored;


--
-- PostgreSQL database dump complete
--

\unrestrict mCpdoJSbRscrRHYypZaxhh9hxruH387xxtaoUwTy0BIZf0TU0xxQM0pVkSyMScG

