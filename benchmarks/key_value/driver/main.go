// The load of `make bench-key-value`: puts, gets and compare-and-sets from many clients at once, over etcd's API or Redis' protocol.
// Each client is a goroutine with one operation under way. Connections: one per client for Redis; the etcd client shares `-connections` of them.
// Prints one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

type store interface {
	put(ctx context.Context, key string, value string) error
	get(ctx context.Context, key string) error
	close()
}

type etcdStore struct{ client *clientv3.Client }

func (s etcdStore) put(ctx context.Context, key string, value string) error {
	_, err := s.client.Put(ctx, key, value)
	return err
}

func (s etcdStore) get(ctx context.Context, key string) error {
	answer, err := s.client.Get(ctx, key)
	if err == nil && len(answer.Kvs) != 1 {
		return fmt.Errorf("key %s has %d values", key, len(answer.Kvs))
	}
	return err
}

func (s etcdStore) close() { s.client.Close() }

type redisStore struct{ client *redis.Client }

func (s redisStore) put(ctx context.Context, key string, value string) error {
	return s.client.Set(ctx, key, value, 0).Err()
}

func (s redisStore) get(ctx context.Context, key string) error { return s.client.Get(ctx, key).Err() }

func (s redisStore) close() { s.client.Close() }

type result struct {
	Operations  int     `json:"operations"`
	Failures    int     `json:"failures"`
	FirstError  string  `json:"first_error"`
	Seconds     float64 `json:"seconds"`
	PerSecond   float64 `json:"per_second"`
	P50Ms       float64 `json:"p50_ms"`
	P99Ms       float64 `json:"p99_ms"`
	LongestMs   float64 `json:"longest_ms"`
	ProcessorUs float64 `json:"processor_us"`
}

func open(target string, addresses []string, clients int, connections int) ([]store, error) {
	if target == "redis" {
		client := redis.NewClient(&redis.Options{Addr: addresses[0], PoolSize: clients, MinIdleConns: clients, ReadTimeout: 30 * time.Second,
			MaxRetries: -1})
		return []store{redisStore{client}}, nil
	}
	var stores []store
	for number := 0; number < connections; number++ {
		client, err := clientv3.New(clientv3.Config{Endpoints: addresses, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return nil, err
		}
		stores = append(stores, etcdStore{client})
	}
	return stores, nil
}

func key(number int) string { return fmt.Sprintf("key-%08d", number) }

func cpu() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

func main() {
	target := flag.String("target", "", "etcd or redis")
	addresses := flag.String("addresses", "", "host:port, comma separated; Redis' protocol: the first")
	operation := flag.String("operation", "put", "put, get, mixed (90 % gets) or fill (each key once)")
	clients := flag.Int("clients", 64, "operations under way")
	connections := flag.Int("connections", 8, "of etcd's client")
	seconds := flag.Float64("seconds", 5, "length")
	keys := flag.Int("keys", 10000, "keys in use")
	size := flag.Int("value-bytes", 256, "size of a value")
	flag.Parse()
	stores, err := open(*target, strings.Split(*addresses, ","), *clients, *connections)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	value := strings.Repeat("v", *size)
	deadline := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	began, cpuBegan := time.Now(), cpu()
	latencies := make([][]time.Duration, *clients)
	failures := make([]int, *clients)
	errors := make([]string, *clients)
	var wait sync.WaitGroup
	for number := 0; number < *clients; number++ {
		wait.Add(1)
		go func(number int) {
			defer wait.Done()
			mine, random := stores[number%len(stores)], rand.New(rand.NewSource(int64(number)))
			for turn := number; ; turn += *clients {
				if *operation == "fill" && turn >= *keys || *operation != "fill" && time.Now().After(deadline) {
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				name := key(random.Intn(*keys))
				if *operation == "fill" {
					name = key(turn)
				}
				sent := time.Now()
				var err error
				if *operation == "get" || *operation == "mixed" && random.Intn(10) > 0 {
					err = mine.get(ctx, name)
				} else {
					err = mine.put(ctx, name, value)
				}
				cancel()
				if err != nil {
					failures[number]++
					errors[number] = err.Error()
					continue
				}
				latencies[number] = append(latencies[number], time.Since(sent))
			}
		}(number)
	}
	wait.Wait()
	report(os.Stdout, latencies, failures, errors, time.Since(began).Seconds(), cpu()-cpuBegan)
	for _, one := range stores {
		one.close()
	}
}

func report(out io.Writer, latencies [][]time.Duration, failures []int, errors []string, seconds float64, processor float64) {
	var all []time.Duration
	found := result{Seconds: seconds}
	for number, one := range latencies {
		all = append(all, one...)
		found.Failures += failures[number]
		if errors[number] != "" && found.FirstError == "" {
			found.FirstError = errors[number]
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	found.Operations = len(all)
	if len(all) > 0 {
		ms := func(share float64) float64 { return float64(all[int(share*float64(len(all)-1))].Microseconds()) / 1000 }
		found.PerSecond = float64(len(all)) / seconds
		found.P50Ms, found.P99Ms, found.LongestMs = ms(0.5), ms(0.99), ms(1)
		found.ProcessorUs = processor * 1e6 / float64(len(all))
	}
	json.NewEncoder(out).Encode(found)
}
