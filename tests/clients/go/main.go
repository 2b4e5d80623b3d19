// What pgx does with a database, printed as one JSON object: the name of each scene, and what it saw or the error that ended it.
//
// Usage: pgx DSN TABLE
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

type database struct {
	*pgx.Conn
	dsn   string
	table string
}

type scene func(ctx context.Context, d database) (any, error)

// sqlstate is what a client program decides by; an error without one is a failure.
func sqlstate(err error) (any, error) {
	var broken *pgconn.PgError
	if errors.As(err, &broken) {
		return broken.Code, nil
	}
	return nil, fmt.Errorf("no SQLSTATE: %v", err)
}

func (d database) pairs(ctx context.Context) (any, error) {
	rows, err := d.Query(ctx, "select id, x from "+d.table+" order by id")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([2]int64, error) {
		var found [2]int64
		err := row.Scan(&found[0], &found[1])
		return found, err
	})
}

func (d database) fill(ctx context.Context) error {
	_, err := d.Exec(ctx, "delete from "+d.table)
	if err == nil {
		_, err = d.Exec(ctx, "insert into "+d.table+"(id, x) values (1, 10), (2, 20), (3, 30)")
	}
	return err
}

// castsIn changes one row with its parameters cast and out of order, the way one mode of execution sends them.
func castsIn(mode pgx.QueryExecMode) scene {
	return func(ctx context.Context, d database) (any, error) {
		if err := d.fill(ctx); err != nil {
			return nil, err
		}
		if _, err := d.Exec(ctx, "update "+d.table+" set x = $2::int where id = $1::int", mode, 1, 2); err != nil {
			return nil, err
		}
		return d.pairs(ctx)
	}
}

func repeated(ctx context.Context, d database) (any, error) {
	var found [3]string
	err := d.QueryRow(ctx, "select $2::text, $1::text, $2::text", "first", "second").Scan(&found[0], &found[1], &found[2])
	return found, err
}

func anyOfNumbers(ctx context.Context, d database) (any, error) {
	if err := d.fill(ctx); err != nil {
		return nil, err
	}
	rows, err := d.Query(ctx, "select id from "+d.table+" where id = any($1) order by id", []int64{3, 1, 7})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func anyOfTexts(ctx context.Context, d database) (any, error) {
	var found [2]bool
	given := []string{"a,b", "it's", `quoted "c"`}
	err := d.QueryRow(ctx, "select $1::text = any($2::text[]), 'c' = any($2::text[])", `quoted "c"`, given).Scan(&found[0], &found[1])
	return found, err
}

func booleans(ctx context.Context, d database) (any, error) {
	var found [4]bool
	err := d.QueryRow(ctx, "select exists(select 1 from "+d.table+" where id = $1::int), true, 1 < 2, not (1 = 1)", 4).
		Scan(&found[0], &found[1], &found[2], &found[3])
	return found, err
}

func types(ctx context.Context, d database) (any, error) {
	name := d.table + "_types"
	columns := "id bigint primary key, b boolean, f double precision, n numeric(10,2), t text, y bytea, d date, ts timestamp," +
		" tz timestamptz, u uuid, j jsonb"
	if _, err := d.Exec(ctx, "create table "+name+"("+columns+")"); err != nil {
		return nil, err
	}
	defer d.Exec(context.Background(), "drop table "+name)
	day := time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)
	moment := time.Date(2026, 2, 3, 4, 5, 6, 789000000, time.UTC)
	_, err := d.Exec(ctx, "insert into "+name+" values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", int64(1)<<40, true, 1.5, "2.50",
		"naïve", []byte{0, 255}, day, moment, moment, "01234567-89ab-cdef-0123-456789abcdef", `{"a": [1, null]}`)
	if err != nil {
		return nil, err
	}
	var (
		id     int64
		b      bool
		f      float64
		n      pgtype.Numeric
		t, u   string
		y      []byte
		gotDay time.Time
		ts, tz time.Time
		j      map[string]any
	)
	row := d.QueryRow(ctx, "select id, b, f, n, t, y, d, ts, tz, u::text, j from "+name)
	if err := row.Scan(&id, &b, &f, &n, &t, &y, &gotDay, &ts, &tz, &u, &j); err != nil {
		return nil, err
	}
	return []any{id, b, f, []any{n.Int.String(), n.Exp}, t, fmt.Sprintf("%x", y), gotDay.Equal(day), ts.Equal(moment), tz.Equal(moment), u, j}, nil
}

func now(ctx context.Context, d database) (any, error) {
	var moment time.Time
	if err := d.QueryRow(ctx, "select now()").Scan(&moment); err != nil {
		return nil, err
	}
	apart := time.Since(moment)
	return apart > -time.Minute && apart < time.Minute, nil
}

func transactions(ctx context.Context, d database) (any, error) {
	if err := d.fill(ctx); err != nil {
		return nil, err
	}
	tx, err := d.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(ctx, "update "+d.table+" set x = 11 where id = $1", 1); err != nil {
		return nil, err
	}
	inner, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := inner.Exec(ctx, "delete from "+d.table); err != nil {
		return nil, err
	}
	if err := inner.Rollback(ctx); err != nil {
		return nil, err
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, err
	}
	undone, err := d.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := undone.Exec(ctx, "delete from "+d.table); err != nil {
		return nil, err
	}
	if err := undone.Rollback(ctx); err != nil {
		return nil, err
	}
	return d.pairs(ctx)
}

func readOnly(ctx context.Context, d database) (any, error) {
	tx, err := d.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(ctx, "delete from "+d.table)
	return sqlstate(err)
}

func duplicate(ctx context.Context, d database) (any, error) {
	if err := d.fill(ctx); err != nil {
		return nil, err
	}
	_, err := d.Exec(ctx, "insert into "+d.table+"(id, x) values ($1, $2)", 1, 1)
	return sqlstate(err)
}

func batch(ctx context.Context, d database) (any, error) {
	if err := d.fill(ctx); err != nil {
		return nil, err
	}
	sent := &pgx.Batch{}
	for id := 1; id <= 3; id++ {
		sent.Queue("update "+d.table+" set x = $2::int where id = $1::int", id, id*100)
	}
	if err := d.SendBatch(ctx, sent).Close(); err != nil {
		return nil, err
	}
	return d.pairs(ctx)
}

func pooled(ctx context.Context, d database) (any, error) {
	if err := d.fill(ctx); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, d.dsn)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	var count int64
	err = pool.QueryRow(ctx, "select count(*) from public."+d.table+" where x > $1", 10).Scan(&count)
	return count, err
}

func loadedTypes(ctx context.Context, d database) (any, error) {
	known, err := d.LoadType(ctx, "_text")
	if err != nil {
		return nil, err
	}
	_, err = d.LoadType(ctx, "hstore")
	return []any{known.OID, err != nil}, nil
}

var scenes = map[string]scene{
	"casts":              castsIn(pgx.QueryExecModeCacheStatement),
	"casts, described":   castsIn(pgx.QueryExecModeCacheDescribe),
	"casts, each time":   castsIn(pgx.QueryExecModeDescribeExec),
	"casts, undescribed": castsIn(pgx.QueryExecModeExec),
	"casts, simple":      castsIn(pgx.QueryExecModeSimpleProtocol),
	"repeated":           repeated,
	"any of numbers":     anyOfNumbers,
	"any of texts":       anyOfTexts,
	"booleans":           booleans,
	"types":              types,
	"now":                now,
	"transactions":       transactions,
	"read only":          readOnly,
	"duplicate":          duplicate,
	"batch":              batch,
	"pool":               pooled,
	"load type":          loadedTypes,
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	dsn, table := os.Args[1], os.Args[2]
	seen := map[string]any{}
	for name, play := range scenes {
		// A connection of its own: a scene that fails leaves nothing to the next.
		connection, err := pgx.Connect(ctx, dsn)
		if err != nil {
			seen[name] = map[string]string{"error": "connect: " + err.Error()}
			continue
		}
		found, err := play(ctx, database{connection, dsn, table})
		if err != nil {
			found = map[string]string{"error": err.Error()}
		}
		seen[name] = found
		connection.Close(ctx)
	}
	text, err := json.Marshal(seen)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(text))
}
