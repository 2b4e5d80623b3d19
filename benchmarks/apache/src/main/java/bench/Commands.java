package bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.BookKeeper;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/** The commands; `benchmarks/ledger/our_client.py` carries out the same ones with our client. */
final class Commands {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final byte[] PASSWORD = new byte[0];
    /** Creations, closes and first appends under way at once. */
    private static final int AT_ONCE = 64;

    private final Map<Long, LedgerHandle> writers = new HashMap<>();
    private BookKeeper client;

    ObjectNode run(String name, JsonNode command) throws Exception {
        switch (name) {
            case "connect":
                return connect(command);
            case "create":
                return create(command);
            case "append":
                return new Appending(chosen(command), command).window();
            case "append_rate":
                return new Appending(chosen(command), command).rate();
            case "append_count":
                return appendCount(command);
            case "tail":
                try (ReadHandle handle = open(command, false)) {
                    return new Reading(handle).tail(command.get("first").asLong(), command.get("count").asInt());
                }
            case "read":
                try (ReadHandle handle = open(command, false)) {
                    double seconds = command.path("seconds").asDouble(Double.POSITIVE_INFINITY);
                    return new Reading(handle).all(command.get("batch").asBoolean(), command.get("chunk").asInt(), seconds);
                }
            case "recover":
                return recover(command);
            case "close":
                return close();
            default:
                throw new IllegalArgumentException("no command " + name);
        }
    }

    private ObjectNode connect(JsonNode command) throws Exception {
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setMetadataServiceUri(command.get("uri").asText());
        Iterator<Map.Entry<String, JsonNode>> settings = command.get("settings").fields();
        while (settings.hasNext()) {
            Map.Entry<String, JsonNode> setting = settings.next();
            configuration.setProperty(setting.getKey(), setting.getValue().asText());
        }
        if (client != null) {
            writers.clear();
            client.close();
        }
        client = BookKeeper.newBuilder(configuration).build();
        return JSON.createObjectNode();
    }

    private ObjectNode create(JsonNode command) throws Exception {
        int count = command.get("count").asInt();
        long started = System.nanoTime();
        List<Long> ids = new ArrayList<>();
        List<CompletableFuture<WriteHandle>> under = new ArrayList<>();
        for (int made = 0; made < count || !under.isEmpty(); made++) {
            if (made < count) {
                under.add(client.newCreateLedgerOp()
                        .withEnsembleSize(command.get("ensemble_size").asInt())
                        .withWriteQuorumSize(command.get("write_quorum").asInt())
                        .withAckQuorumSize(command.get("ack_quorum").asInt())
                        .withDigestType(DigestType.CRC32C)
                        .withPassword(PASSWORD)
                        .execute());
            }
            if (under.size() >= AT_ONCE || made >= count - 1) {
                LedgerHandle handle = (LedgerHandle) under.remove(0).get();
                writers.put(handle.getId(), handle);
                ids.add(handle.getId());
            }
        }
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode ledgers = answer.putArray("ledgers");
        ids.forEach(ledgers::add);
        return answer.put("seconds", (System.nanoTime() - started) / 1e9);
    }

    private List<LedgerHandle> chosen(JsonNode command) {
        List<LedgerHandle> handles = new ArrayList<>();
        command.get("ledgers").forEach(id -> handles.add(writers.get(id.asLong())));
        return handles;
    }

    /** So many entries to each ledger, a thousand under way at once. */
    private ObjectNode appendCount(JsonNode command) throws Exception {
        byte[] payload = new byte[command.get("size").asInt()];
        new java.util.Random(1).nextBytes(payload);
        Semaphore window = new Semaphore(command.get("window").asInt());
        AtomicReference<Integer> failure = new AtomicReference<>();
        long started = System.nanoTime();
        int count = command.get("count").asInt();
        for (LedgerHandle handle : chosen(command)) {
            for (int index = 0; index < count; index++) {
                window.acquire();
                handle.asyncAddEntry(payload, (code, ledger, entry, context) -> {
                    if (code != 0) {
                        failure.set(code);
                    }
                    window.release();
                }, null);
            }
        }
        if (!window.tryAcquire(command.get("window").asInt(), Appending.END_S, TimeUnit.SECONDS) || failure.get() != null) {
            Integer code = failure.get();
            throw new IllegalStateException(
                    code == null ? "the last appends are not acknowledged" : "an append failed: " + BKException.getMessage(code));
        }
        return JSON.createObjectNode().put("seconds", (System.nanoTime() - started) / 1e9);
    }

    private ReadHandle open(JsonNode command, boolean recovery) throws Exception {
        return client.newOpenLedgerOp()
                .withLedgerId(command.get("ledger").asLong())
                .withRecovery(recovery)
                .withDigestType(DigestType.CRC32C)
                .withPassword(PASSWORD)
                .execute()
                .get();
    }

    private ObjectNode recover(JsonNode command) throws Exception {
        long started = System.nanoTime();
        try (ReadHandle handle = open(command, true)) {
            double seconds = (System.nanoTime() - started) / 1e9;
            return JSON.createObjectNode().put("seconds", seconds).put("last_entry_id", handle.getLastAddConfirmed());
        }
    }

    /** Closes every ledger that is being written. */
    private ObjectNode close() throws Exception {
        List<CompletableFuture<Void>> under = new ArrayList<>();
        for (LedgerHandle handle : writers.values()) {
            under.add(handle.closeAsync());
            if (under.size() >= AT_ONCE) {
                under.remove(0).get();
            }
        }
        for (CompletableFuture<Void> closing : under) {
            closing.get();
        }
        writers.clear();
        return JSON.createObjectNode();
    }
}
