--
-- PostgreSQL database dump
--

\restrict VREfnZ8xzycSfpWVN8Iw3fS7zKgSteaUje88TNXzTSIjnSb61ra4g0bl9XE3mnf

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

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: Order Items; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public."Order Items" (
    "order" bigint NOT NULL,
    "Line No" integer NOT NULL,
    product bigint,
    qty integer DEFAULT 1 NOT NULL,
    price numeric(10,2)
);


ALTER TABLE public."Order Items" OWNER TO tester;

--
-- Name: a_returns; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.a_returns (
    "order" bigint,
    line integer,
    reason text DEFAULT 'it''s; "broken" \ here'::text
);


ALTER TABLE public.a_returns OWNER TO tester;

--
-- Name: customers; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.customers (
    id integer NOT NULL,
    name character varying(80) NOT NULL,
    email text,
    status character varying(10) DEFAULT 'new'::character varying,
    is_member boolean DEFAULT false NOT NULL,
    joined timestamp with time zone DEFAULT now(),
    seen timestamp without time zone DEFAULT (now() AT TIME ZONE 'utc'::text),
    born date,
    code uuid DEFAULT gen_random_uuid(),
    notes jsonb DEFAULT '{}'::jsonb,
    raw json,
    photo bytea,
    CONSTRAINT customers_status_check CHECK (((status)::text = ANY ((ARRAY['new'::character varying, 'active'::character varying, 'closed'::character varying])::text[]))),
    CONSTRAINT name_is_there CHECK (((length((name)::text) > 0) AND ((name)::text !~~ ' %'::text)))
);
ALTER TABLE ONLY public.customers ALTER COLUMN email SET STATISTICS 500;


ALTER TABLE public.customers OWNER TO tester;

--
-- Name: TABLE customers; Type: COMMENT; Schema: public; Owner: tester
--

COMMENT ON TABLE public.customers IS 'who buys; here';


--
-- Name: COLUMN customers.name; Type: COMMENT; Schema: public; Owner: tester
--

COMMENT ON COLUMN public.customers.name IS 'line one
line two; still';


--
-- Name: active; Type: VIEW; Schema: public; Owner: tester
--

CREATE VIEW public.active AS
 SELECT c.id,
    c.name,
    ((((c.name)::text || ' <'::text) || COALESCE(c.email, '?'::text)) || '>'::text) AS shown
   FROM public.customers c
  WHERE (((c.status)::text = 'active'::text) AND ((c.name)::text ~~ 'A%'::text));


ALTER TABLE public.active OWNER TO tester;

--
-- Name: customers_id_seq; Type: SEQUENCE; Schema: public; Owner: tester
--

CREATE SEQUENCE public.customers_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.customers_id_seq OWNER TO tester;

--
-- Name: customers_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: tester
--

ALTER SEQUENCE public.customers_id_seq OWNED BY public.customers.id;


--
-- Name: defaults; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.defaults (
    a timestamp with time zone DEFAULT CURRENT_TIMESTAMP,
    b timestamp without time zone DEFAULT timezone('utc'::text, now()),
    c date DEFAULT '2024-01-01'::date,
    d text DEFAULT NULL::character varying,
    e bytea DEFAULT '\x00ff'::bytea,
    f double precision DEFAULT 1.5,
    g bigint DEFAULT '9007199254740993'::bigint,
    h boolean DEFAULT true,
    i time without time zone DEFAULT '12:00:00'::time without time zone,
    j character(3) DEFAULT 'ab'::bpchar,
    k numeric DEFAULT '-0.5'::numeric,
    l json DEFAULT '[]'::json,
    m uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid,
    n real DEFAULT 0,
    o smallint DEFAULT 3,
    p text DEFAULT 'tab	here'::text,
    CONSTRAINT defaults_c_check CHECK ((c >= '2000-01-01'::date))
);


ALTER TABLE public.defaults OWNER TO tester;

--
-- Name: nobody; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.nobody (
    a integer,
    b text
);


ALTER TABLE public.nobody OWNER TO tester;

--
-- Name: totals; Type: VIEW; Schema: public; Owner: tester
--

CREATE VIEW public.totals AS
SELECT
    NULL::bigint AS id,
    NULL::integer AS customer,
    NULL::bigint AS lines,
    NULL::bigint AS total;


ALTER TABLE public.totals OWNER TO tester;

--
-- Name: of_totals; Type: VIEW; Schema: public; Owner: tester
--

CREATE VIEW public.of_totals AS
 SELECT t.customer,
    max(t.lines) AS most
   FROM public.totals t
  GROUP BY t.customer;


ALTER TABLE public.of_totals OWNER TO tester;

--
-- Name: orders; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.orders (
    id bigint NOT NULL,
    customer integer NOT NULL,
    placed date DEFAULT CURRENT_DATE NOT NULL,
    paid_at time without time zone
);


ALTER TABLE public.orders OWNER TO tester;

--
-- Name: orders_id_seq; Type: SEQUENCE; Schema: public; Owner: tester
--

ALTER TABLE public.orders ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.orders_id_seq
    START WITH 1000
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: products; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.products (
    sku bigint NOT NULL,
    title text NOT NULL COLLATE pg_catalog."C",
    price numeric(10,2) DEFAULT 0.00 NOT NULL,
    weight double precision,
    stock smallint DEFAULT '-1'::integer,
    label text GENERATED ALWAYS AS (upper(title)) STORED,
    CONSTRAINT products_price_check CHECK ((price >= (0)::numeric))
);


ALTER TABLE public.products OWNER TO tester;

--
-- Name: products_sku_seq; Type: SEQUENCE; Schema: public; Owner: tester
--

ALTER TABLE public.products ALTER COLUMN sku ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.products_sku_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: staff; Type: TABLE; Schema: public; Owner: pg_monitor
--

CREATE TABLE public.staff (
    id integer NOT NULL,
    boss integer,
    name text
);


ALTER TABLE public.staff OWNER TO pg_monitor;

--
-- Name: words; Type: TABLE; Schema: public; Owner: tester
--

CREATE TABLE public.words (
    index integer NOT NULL,
    transaction text,
    "select" text DEFAULT ''::character varying,
    "With ""quotes""" boolean,
    CONSTRAINT words_check CHECK ((((index >= 1) AND (index <= 99)) AND (transaction IS DISTINCT FROM 'x'::text))),
    CONSTRAINT words_check1 CHECK (((index = ANY (ARRAY[1, 2, 3])) OR ("select" IS NOT NULL)))
);


ALTER TABLE public.words OWNER TO tester;

--
-- Name: customers id; Type: DEFAULT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.customers ALTER COLUMN id SET DEFAULT nextval('public.customers_id_seq'::regclass);


--
-- Data for Name: Order Items; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public."Order Items" ("order", "Line No", product, qty, price) FROM stdin;
1000	1	1	2	3.50
1000	2	2	1	12.00
1001	1	\N	1	\N
\.


--
-- Data for Name: a_returns; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.a_returns ("order", line, reason) FROM stdin;
1000	1	broken
\N	5	it's; "broken" \\ here
\.


--
-- Data for Name: customers; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.customers (id, name, email, status, is_member, joined, seen, born, code, notes, raw, photo) FROM stdin;
1	Ann	ann@example.org	active	t	2024-02-29 10:00:00.123456+00	2024-02-29 12:00:00	1999-12-31	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	{"a": [1, 2, {"b": null}]}	{"k" :  1}	\\x00ff275c0a
3	line\nbreak; and \\. and \\N and 'quotes' "	a\\b@x	new	t	1969-12-31 23:59:59+00	2000-01-01 00:00:00.5	0001-01-01	\N	"text"	[]	\\x
4	ünïcödé €😀		closed	f	2024-07-01 00:00:00+00	\N	\N	\N	3	null	\\xdeadbeef
5	cr\rvt\vff\fbs\b	\\N	new	f	2024-07-01 00:00:00+00	\N	\N	\N	\N	\N	\N
2	two again	\N	new	f	2024-01-01 00:00:00+00	2024-01-01 00:00:00	\N	\N	{}	\N	\N
\.


--
-- Data for Name: defaults; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.defaults (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) FROM stdin;
2023-12-31 18:30:00.5+00	1900-01-01 00:00:00	9999-12-31	  	\\x	1e-300	-9223372036854775808	f	23:59:59.999999	a  	123456789012.345	{"a": "\\u00e4"}	a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11	0.25	-32768	
\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N
\.


--
-- Data for Name: nobody; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.nobody (a, b) FROM stdin;
\.


--
-- Data for Name: orders; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.orders (id, customer, placed, paid_at) FROM stdin;
1000	1	2024-03-01	12:34:56.789
1001	3	2024-03-02	\N
\.


--
-- Data for Name: products; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.products (sku, title, price, weight, stock) FROM stdin;
1	Cup	3.50	0.1	7
2	Pot	12.00	1e+300	\N
3	Lid	99999999.99	-0.5	32767
\.


--
-- Data for Name: staff; Type: TABLE DATA; Schema: public; Owner: pg_monitor
--

COPY public.staff (id, boss, name) FROM stdin;
1	2	worker
2	\N	The boss
\.


--
-- Data for Name: words; Type: TABLE DATA; Schema: public; Owner: tester
--

COPY public.words (index, transaction, "select", "With ""quotes""") FROM stdin;
1		a"b	\N
2	\t\n\\.\n	\\N	t
99	NULL		\N
\.


--
-- Name: customers_id_seq; Type: SEQUENCE SET; Schema: public; Owner: tester
--

SELECT pg_catalog.setval('public.customers_id_seq', 41, true);


--
-- Name: orders_id_seq; Type: SEQUENCE SET; Schema: public; Owner: tester
--

SELECT pg_catalog.setval('public.orders_id_seq', 1001, true);


--
-- Name: products_sku_seq; Type: SEQUENCE SET; Schema: public; Owner: tester
--

SELECT pg_catalog.setval('public.products_sku_seq', 3, true);


--
-- Name: Order Items Order Items_pkey; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public."Order Items"
    ADD CONSTRAINT "Order Items_pkey" PRIMARY KEY ("order", "Line No");


--
-- Name: a_returns a_returns_order_line_key; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.a_returns
    ADD CONSTRAINT a_returns_order_line_key UNIQUE ("order", line);


--
-- Name: customers customers_email_key; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.customers
    ADD CONSTRAINT customers_email_key UNIQUE (email);


--
-- Name: customers customers_pkey; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.customers
    ADD CONSTRAINT customers_pkey PRIMARY KEY (id);


--
-- Name: orders orders_pkey; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);


--
-- Name: products products_pkey; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.products
    ADD CONSTRAINT products_pkey PRIMARY KEY (sku);


--
-- Name: staff staff_pkey; Type: CONSTRAINT; Schema: public; Owner: pg_monitor
--

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_pkey PRIMARY KEY (id);


--
-- Name: words words_pkey; Type: CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.words
    ADD CONSTRAINT words_pkey PRIMARY KEY (index);


--
-- Name: customers_lower; Type: INDEX; Schema: public; Owner: tester
--

CREATE INDEX customers_lower ON public.customers USING btree (lower((name)::text));


--
-- Name: customers_open; Type: INDEX; Schema: public; Owner: tester
--

CREATE INDEX customers_open ON public.customers USING btree (joined DESC NULLS LAST) WHERE (((status)::text = 'active'::text) AND is_member);


--
-- Name: customers_shown; Type: INDEX; Schema: public; Owner: tester
--

CREATE INDEX customers_shown ON public.customers USING btree (COALESCE(email, ''::text), ((notes -> 'a'::text)));


--
-- Name: orders_customer; Type: INDEX; Schema: public; Owner: tester
--

CREATE INDEX orders_customer ON public.orders USING btree (customer, placed DESC);


--
-- Name: products_title; Type: INDEX; Schema: public; Owner: tester
--

CREATE UNIQUE INDEX products_title ON public.products USING btree (title, price DESC);


--
-- Name: words_once; Type: INDEX; Schema: public; Owner: tester
--

CREATE UNIQUE INDEX words_once ON public.words USING btree (transaction) WHERE ("With ""quotes""" IS NULL);


--
-- Name: totals _RETURN; Type: RULE; Schema: public; Owner: tester
--

CREATE OR REPLACE VIEW public.totals AS
 SELECT o.id,
    o.customer,
    count(i."order") AS lines,
    sum(i.qty) AS total
   FROM (public.orders o
     LEFT JOIN public."Order Items" i ON ((i."order" = o.id)))
  GROUP BY o.id;


--
-- Name: Order Items Order Items_order_fkey; Type: FK CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public."Order Items"
    ADD CONSTRAINT "Order Items_order_fkey" FOREIGN KEY ("order") REFERENCES public.orders(id) ON UPDATE CASCADE ON DELETE CASCADE;


--
-- Name: Order Items Order Items_product_fkey; Type: FK CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public."Order Items"
    ADD CONSTRAINT "Order Items_product_fkey" FOREIGN KEY (product) REFERENCES public.products(sku) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED;


--
-- Name: a_returns a_returns_order_line_fkey; Type: FK CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.a_returns
    ADD CONSTRAINT a_returns_order_line_fkey FOREIGN KEY ("order", line) REFERENCES public."Order Items"("order", "Line No") ON DELETE CASCADE;


--
-- Name: orders orders_customer_fkey; Type: FK CONSTRAINT; Schema: public; Owner: tester
--

ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_customer_fkey FOREIGN KEY (customer) REFERENCES public.customers(id) ON DELETE CASCADE;


--
-- Name: staff staff_boss_fkey; Type: FK CONSTRAINT; Schema: public; Owner: pg_monitor
--

ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_boss_fkey FOREIGN KEY (boss) REFERENCES public.staff(id);


--
-- Name: TABLE customers; Type: ACL; Schema: public; Owner: tester
--

GRANT SELECT ON TABLE public.customers TO pg_monitor;


--
-- Name: SEQUENCE customers_id_seq; Type: ACL; Schema: public; Owner: tester
--

GRANT USAGE ON SEQUENCE public.customers_id_seq TO pg_monitor;


--
-- PostgreSQL database dump complete
--

\unrestrict VREfnZ8xzycSfpWVN8Iw3fS7zKgSteaUje88TNXzTSIjnSb61ra4g0bl9XE3mnf

