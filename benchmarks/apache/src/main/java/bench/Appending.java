package bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.bookkeeper.client.AsyncCallback;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.LedgerHandle;

/** Appends to one ledger or to many, each as often as its last one was acknowledged, or at a fixed rate whatever becomes of them. */
final class Appending {
    /** How long the last appends may take. */
    static final int END_S = 30;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final double PER_S = 1e9;

    private final List<LedgerHandle> handles;
    private final JsonNode command;
    private final Latencies latencies = new Latencies();
    private final byte[] payload;
    private volatile int failure;

    Appending(List<LedgerHandle> handles, JsonNode command) {
        this.handles = handles;
        this.command = command;
        this.payload = new byte[command.get("size").asInt()];
        new Random(1).nextBytes(payload);
    }

    /** Keeps so many appends under way, shared out over the ledgers. A latency is from the call to its callback. */
    ObjectNode window() throws Exception {
        int window = command.get("window").asInt();
        Semaphore room = new Semaphore(window);
        long started = System.nanoTime();
        long until = started + (long) (command.get("seconds").asDouble() * PER_S);
        if (handles.size() == 1) {
            LedgerHandle handle = handles.get(0);
            while (System.nanoTime() < until && failure == 0) {
                room.acquire();
                handle.asyncAddEntry(payload, callback(System.nanoTime(), room), null);
            }
        } else {
            // Each ledger has its share under way: a callback sends the next append of its own ledger.
            for (int index = 0; index < window; index++) {
                room.acquire();
                appendOn(handles.get(index % handles.size()), room, until);
            }
        }
        // The last callbacks belong to the measurement: they are waited for, and the time with them.
        if (!room.tryAcquire(window, END_S + command.get("seconds").asLong(), TimeUnit.SECONDS)) {
            throw new IllegalStateException("the last appends are not acknowledged");
        }
        return described(started);
    }

    private void appendOn(LedgerHandle handle, Semaphore room, long until) {
        long called = System.nanoTime();
        handle.asyncAddEntry(payload, (code, ledger, entry, context) -> {
            long now = System.nanoTime();
            note(code, now - called);
            if (code == BKException.Code.OK && now < until) {
                appendOn(handle, room, until);
            } else {
                room.release();
            }
        }, null);
    }

    /**
     * Sends at a fixed rate and waits for nothing. A latency is from the instant at which the append was due, whenever it was sent, so
     * that a stall counts for all that it held up. Each payload begins with that instant.
     */
    ObjectNode rate() throws Exception {
        double rate = command.get("rate").asDouble();
        int count = command.get("count").asInt();
        LedgerHandle handle = handles.get(0);
        Semaphore acknowledged = new Semaphore(0);
        long started = System.nanoTime();
        for (int index = 0; index < count && failure == 0; index++) {
            long due = started + (long) (index * PER_S / rate);
            for (long now = System.nanoTime(); now < due; now = System.nanoTime()) {
                LockSupport.parkNanos(due - now);
            }
            byte[] stamped = payload.clone();
            ByteBuffer.wrap(stamped).putLong(due);
            handle.asyncAddEntry(stamped, callback(due, acknowledged), null);
        }
        if (!acknowledged.tryAcquire(count, END_S, TimeUnit.SECONDS)) {
            throw new IllegalStateException("appends failed with code " + failure + ", or the last are not acknowledged");
        }
        return described(started);
    }

    private AsyncCallback.AddCallback callback(long since, Semaphore room) {
        return (code, ledger, entry, context) -> {
            note(code, System.nanoTime() - since);
            room.release();
        };
    }

    private void note(int code, long latency) {
        if (code == BKException.Code.OK) {
            latencies.add(latency);
        } else {
            failure = code;
        }
    }

    private ObjectNode described(long started) {
        if (failure != 0) {
            throw new IllegalStateException("an append failed: " + BKException.getMessage(failure));
        }
        double seconds = (System.nanoTime() - started) / PER_S;
        ObjectNode answer = JSON.createObjectNode().put("seconds", seconds).put("per_s", latencies.count() / seconds);
        latencies.describe(answer);
        return answer;
    }
}
