package bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.api.LastConfirmedAndEntry;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.ReadHandle;

/** Reads one ledger: all of it as fast as can be, or its new entries as soon as they are confirmed. */
final class Reading {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int AT_ONCE = 4;
    private static final int TAIL_CHUNK = 100;
    private static final long LONG_POLL_MS = 1000;
    private static final long MOST_BYTES = 4 << 20;

    private final ReadHandle handle;

    Reading(ReadHandle handle) {
        this.handle = handle;
    }

    /** One reading under way: from its first entry to its last; a batch read may bring fewer, and is continued. */
    private record Chunk(long first, long last, CompletableFuture<LedgerEntries> future) {
    }

    private Chunk start(long first, long last, boolean batch) {
        return new Chunk(first, last,
                batch ? handle.batchReadAsync(first, (int) (last - first + 1), MOST_BYTES) : handle.readAsync(first, last));
    }

    /** All of it, or what comes of it in so many seconds: what arrives after them does not count. */
    ObjectNode all(boolean batch, int chunk, double limit) throws Exception {
        long started = System.nanoTime();
        long last = handle.getLastAddConfirmed();
        long next = 0;
        long entries = 0;
        long bytes = 0;
        ArrayDeque<Chunk> under = new ArrayDeque<>();
        while (true) {
            while (next <= last && under.size() < AT_ONCE && since(started) < limit) {
                long end = Math.min(last, next + chunk - 1);
                under.add(start(next, end, batch));
                next = end + 1;
            }
            if (under.isEmpty()) {
                break;
            }
            Chunk head = under.remove();
            long expected = head.first();
            try (LedgerEntries found = head.future().get()) {
                boolean counts = since(started) < limit;
                for (LedgerEntry entry : found) {
                    if (entry.getEntryId() != expected++) {
                        throw new IllegalStateException("entry " + entry.getEntryId() + " out of order");
                    }
                    if (counts) {
                        bytes += entry.getEntryBuffer().readableBytes();
                        entries++;
                    }
                }
            }
            if (expected <= head.last() && since(started) < limit) {
                under.addFirst(start(expected, head.last(), batch));
            }
        }
        double ended = since(started);
        double seconds = Math.min(ended, limit);
        return JSON.createObjectNode().put("seconds", seconds).put("entries", entries).put("bytes", bytes)
                .put("stopped", ended >= limit).put("per_s", entries / seconds).put("mib_per_s", bytes / seconds / (1 << 20));
    }

    private static double since(long started) {
        return (System.nanoTime() - started) / 1e9;
    }

    /** Follows the writer by long polls; what is confirmed already is read in one go. A latency is from the instant in the payload. */
    ObjectNode tail(long first, int count) throws Exception {
        Latencies latencies = new Latencies();
        long next = first;
        long end = first + count;
        while (next < end) {
            long confirmed = Math.min(handle.getLastAddConfirmed(), end - 1);
            if (next <= confirmed) {
                try (LedgerEntries found = handle.readAsync(next, Math.min(confirmed, next + TAIL_CHUNK - 1)).get()) {
                    for (LedgerEntry entry : found) {
                        note(latencies, entry);
                        next++;
                    }
                }
                continue;
            }
            try (LastConfirmedAndEntry found = handle.readLastAddConfirmedAndEntry(next, LONG_POLL_MS, false)) {
                if (found.hasEntry()) {
                    note(latencies, found.getEntry());
                    next++;
                }
            }
        }
        ObjectNode answer = JSON.createObjectNode();
        latencies.describe(answer);
        return answer;
    }

    private static void note(Latencies latencies, LedgerEntry entry) {
        ByteBuffer payload = entry.getEntryNioBuffer();
        latencies.add(System.nanoTime() - payload.getLong(payload.position()));
    }
}
