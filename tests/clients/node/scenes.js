// What node-postgres does with a database, printed as one JSON object: the name of each scene, and what it saw or the error that ended it.
//
// Usage: node scenes.js HOST PORT DATABASE TABLE

"use strict";

const { readFileSync } = require("node:fs");
const { Client, Pool } = require("pg");

const [host, port, database, table] = process.argv.slice(2);
const authority = process.env.CA_FILE;
const place = {
  host,
  port: Number(port),
  database,
  user: process.env.PGUSER || "tester",
  connectionTimeoutMillis: 10000,
  ...(authority && { ssl: { ca: readFileSync(authority, "utf8") } }),
};

async function fill(client) {
  await client.query(`delete from ${table}`);
  await client.query(`insert into ${table}(id, x) values (1, 10), (2, 20), (3, 30)`);
}

async function pairs(client) {
  const { rows } = await client.query({ text: `select id, x from ${table} order by id`, rowMode: "array" });
  return rows.map((row) => row.map(Number));
}

async function sqlstate(action) {
  try {
    await action();
  } catch (error) {
    return error.code;
  }
  throw new Error("it was not refused");
}

const scenes = {
  async casts(client) {
    await fill(client);
    await client.query(`update ${table} set x = $2::int where id = $1::int`, [1, 2]);
    return pairs(client);
  },
  async "casts, named"(client) {
    await fill(client);
    for (const [id, x] of [[1, 2], [3, 4]]) {
      await client.query({ name: "change", text: `update ${table} set x = $2::int where id = $1::int`, values: [id, x] });
    }
    return pairs(client);
  },
  async repeated(client) {
    const { rows } = await client.query({ text: "select $2::text, $1::text, $2::text", values: ["first", "second"], rowMode: "array" });
    return rows[0];
  },
  async "any of numbers"(client) {
    await fill(client);
    const { rows } = await client.query(`select id from ${table} where id = any($1) order by id`, [[3, 1, 7]]);
    return rows.map((row) => Number(row.id));
  },
  async "any of texts"(client) {
    const given = ["a,b", "it's", 'quoted "c"'];
    const { rows } = await client.query({
      text: "select $1::text = any($2::text[]), 'c' = any($2::text[])",
      values: ['quoted "c"', given],
      rowMode: "array",
    });
    return rows[0];
  },
  async booleans(client) {
    const text = `select exists(select 1 from ${table} where id = $1::int), true, 1 < 2, not (1 = 1)`;
    const { rows } = await client.query({ text, values: [4], rowMode: "array" });
    return rows[0];
  },
  async types(client) {
    const name = `${table}_types`;
    const columns = "id bigint primary key, b boolean, f double precision, n numeric(10,2), t text, y bytea, ts timestamp, tz timestamptz, j jsonb";
    await client.query(`create table ${name}(${columns})`);
    try {
      const moment = new Date(Date.UTC(2026, 1, 3, 4, 5, 6, 789));
      const values = ["1099511627776", true, 1.5, "2.50", "naïve", Buffer.from([0, 255]), "2026-02-03 04:05:06.789", moment, { a: [1, null] }];
      await client.query(`insert into ${name} values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, values);
      const { rows } = await client.query(`select * from ${name}`);
      const row = rows[0];
      return [row.id, row.b, row.f, row.n, row.t, row.y.toString("hex"), row.ts instanceof Date, row.tz.getTime() === moment.getTime(), row.j];
    } finally {
      await client.query(`drop table ${name}`);
    }
  },
  async now(client) {
    const { rows } = await client.query("select now() as moment");
    return Math.abs(Date.now() - rows[0].moment.getTime()) < 60000;
  },
  async transactions(client) {
    await fill(client);
    await client.query("begin");
    await client.query(`update ${table} set x = 11 where id = $1`, [1]);
    await client.query("savepoint inner_one");
    await client.query(`delete from ${table}`);
    await client.query("rollback to savepoint inner_one");
    await client.query("commit");
    await client.query("begin");
    await client.query(`delete from ${table}`);
    await client.query("rollback");
    return pairs(client);
  },
  async duplicate(client) {
    await fill(client);
    return sqlstate(() => client.query(`insert into ${table}(id, x) values ($1, $2)`, [1, 1]));
  },
  async "several statements"(client) {
    await fill(client);
    const results = await client.query(`update ${table} set x = 0 where id = 1; select count(*) from ${table}`);
    return [results.map((one) => one.command), Number(results[1].rows[0].count)];
  },
  async pool(client) {
    await fill(client);
    const pool = new Pool({ ...place, max: 2 });
    try {
      const { rows } = await pool.query(`select count(*) as n from public.${table} where x > $1`, [10]);
      return Number(rows[0].n);
    } finally {
      await pool.end();
    }
  },
};

async function main() {
  const seen = {};
  for (const [name, play] of Object.entries(scenes)) {
    // A connection of its own: a scene that fails leaves nothing to the next.
    const client = new Client(place);
    try {
      await client.connect();
      seen[name] = await play(client);
    } catch (error) {
      seen[name] = { error: `${error.code || ""} ${error.message}`.trim() };
    } finally {
      await client.end().catch(() => undefined);
    }
  }
  process.stdout.write(`${JSON.stringify(seen)}\n`);
}

main();
