package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Base64;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.BookieInfoReader;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.BookKeeper;
import org.apache.bookkeeper.client.api.CreateAdvBuilder;
import org.apache.bookkeeper.client.api.CreateBuilder;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.ForceableHandle;
import org.apache.bookkeeper.client.api.Handle;
import org.apache.bookkeeper.client.api.LastConfirmedAndEntry;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.ListLedgersResult;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteAdvHandle;
import org.apache.bookkeeper.client.api.WriteFlag;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.meta.zk.ZKMetadataClientDriver;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.util.AvailabilityOfEntriesOfLedger;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/** The commands of the driver, on the public interface of BookKeeper's client. {@code driver.py} tells what each takes and gives. */
final class Commands {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final AtomicLong names = new AtomicLong();
    private final ConcurrentMap<Long, BookKeeper> clients = new ConcurrentHashMap<>();
    private final ConcurrentMap<Long, Handle> handles = new ConcurrentHashMap<>();
    private final ConcurrentMap<Long, Appends> pending = new ConcurrentHashMap<>();
    private final Daemons daemons = new Daemons();

    ObjectNode run(String name, JsonNode command) throws Exception {
        switch (name) {
            case "hello":
                return hello();
            case "connect":
                return connect(command);
            case "disconnect":
                clients.remove(command.get("client").asLong()).close();
                return JSON.createObjectNode();
            case "expire_session":
                return expireSession(command);
            case "start_auditor":
                return daemons.startAuditor(command);
            case "start_worker":
                return daemons.startWorker(command);
            case "stop_daemon":
                return daemons.stop(command);
            case "bookie_info":
                return bookieInfo(command);
            case "list_entries":
                return listEntries(command);
            case "create":
                return create(command);
            case "open":
                return open(command);
            case "delete":
                client(command).newDeleteLedgerOp().withLedgerId(command.get("ledger_id").asLong()).execute().get();
                return JSON.createObjectNode();
            case "list":
                return list(command);
            case "metadata":
                return describe(client(command).getLedgerMetadata(command.get("ledger_id").asLong()).get());
            case "state":
                return state(handle(command));
            case "append":
                return append(command);
            case "append_many":
                return appendMany(command);
            case "outcome":
                return pending.remove(command.get("pending").asLong()).outcome();
            case "force":
                ((ForceableHandle) handle(command)).force().get();
                return state(handle(command));
            case "close":
                handles.remove(command.get("handle").asLong()).close();
                return JSON.createObjectNode();
            default:
                return read(name, command, (ReadHandle) handle(command));
        }
    }

    private ObjectNode read(String name, JsonNode command, ReadHandle handle) throws Exception {
        switch (name) {
            case "read":
                return entries(handle.readAsync(command.get("first").asLong(), command.get("last").asLong()));
            case "read_unconfirmed":
                return entries(handle.readUnconfirmedAsync(command.get("first").asLong(), command.get("last").asLong()));
            case "batch_read":
                return entries(Release.batchRead(handle, command.get("first").asLong(), command.get("max_count").asInt(),
                        command.get("max_bytes").asLong(), command.get("unconfirmed").asBoolean()));
            case "read_last_confirmed":
                return lastConfirmed(command.get("kind").asText(), handle);
            case "wait_for_entry":
                return waitForEntry(command, handle);
            case "tail":
                return tail(command, handle);
            default:
                throw new IllegalArgumentException("no command " + name);
        }
    }

    private ObjectNode hello() {
        ObjectNode answer = JSON.createObjectNode();
        answer.put("release", String.valueOf(BookKeeper.class.getPackage().getImplementationVersion()));
        answer.put("batch_reads", Release.BATCH_READS);
        return answer;
    }

    private ObjectNode connect(JsonNode command) throws Exception {
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setMetadataServiceUri(command.get("uri").asText());
        configuration.setUseV2WireProtocol(command.get("wire").asText().equals("v2"));
        // Many clients live in one driver, on two cores.
        configuration.setNumIOThreads(1);
        configuration.setNumWorkerThreads(1);
        Iterator<Map.Entry<String, JsonNode>> settings = command.get("settings").fields();
        while (settings.hasNext()) {
            Map.Entry<String, JsonNode> setting = settings.next();
            configuration.setProperty(setting.getKey(), setting.getValue().asText());
        }
        return named("client", clients, BookKeeper.newBuilder(configuration).build());
    }

    /** Ends the client's ZooKeeper session as the server would: somebody else takes it up by its id and password and closes it. */
    private ObjectNode expireSession(JsonNode command) throws Exception {
        org.apache.bookkeeper.client.BookKeeper client = (org.apache.bookkeeper.client.BookKeeper) client(command);
        ZooKeeper mine = ((ZKMetadataClientDriver) client.getMetadataClientDriver()).getZk();
        long session = mine.getSessionId();
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper other = new ZooKeeper(command.get("servers").asText(), mine.getSessionTimeout(), event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        }, session, mine.getSessionPasswd());
        if (!connected.await(10, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the session could not be taken up");
        }
        other.close();
        ObjectNode answer = JSON.createObjectNode();
        answer.put("session", session);
        return answer;
    }

    private ObjectNode bookieInfo(JsonNode command) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        org.apache.bookkeeper.client.BookKeeper client = (org.apache.bookkeeper.client.BookKeeper) client(command);
        for (Map.Entry<BookieId, BookieInfoReader.BookieInfo> found : client.getBookieInfo().entrySet()) {
            ObjectNode info = answer.putObject(found.getKey().toString());
            info.put("total_bytes", found.getValue().getTotalDiskSpace());
            info.put("free_bytes", found.getValue().getFreeDiskSpace());
        }
        return answer;
    }

    /** What one bookie says it holds of a ledger: how many entries, and which of those up to an id. */
    private ObjectNode listEntries(JsonNode command) throws Exception {
        org.apache.bookkeeper.client.BookKeeper client = (org.apache.bookkeeper.client.BookKeeper) client(command);
        AvailabilityOfEntriesOfLedger found = new BookKeeperAdmin(client)
                .asyncGetListOfEntriesOfLedger(BookieId.parse(command.get("bookie").asText()), command.get("ledger_id").asLong())
                .get();
        ObjectNode answer = JSON.createObjectNode();
        answer.put("count", found.getTotalNumOfAvailableEntries());
        ArrayNode ids = answer.putArray("entry_ids");
        for (long id = 0; id <= command.get("last").asLong(); id++) {
            if (found.isEntryAvailable(id)) {
                ids.add(id);
            }
        }
        return answer;
    }

    private ObjectNode create(JsonNode command) throws Exception {
        Map<String, byte[]> custom = new HashMap<>();
        Iterator<Map.Entry<String, JsonNode>> fields = command.get("custom").fields();
        while (fields.hasNext()) {
            Map.Entry<String, JsonNode> field = fields.next();
            custom.put(field.getKey(), field.getValue().binaryValue());
        }
        EnumSet<WriteFlag> flags = command.get("deferred_sync").asBoolean() ? EnumSet.of(WriteFlag.DEFERRED_SYNC) : WriteFlag.NONE;
        CreateBuilder builder = client(command).newCreateLedgerOp()
                .withEnsembleSize(command.get("ensemble_size").asInt())
                .withWriteQuorumSize(command.get("write_quorum").asInt())
                .withAckQuorumSize(command.get("ack_quorum").asInt())
                .withDigestType(DigestType.valueOf(command.get("digest").asText()))
                .withPassword(command.get("password").binaryValue())
                .withCustomMetadata(custom)
                .withWriteFlags(flags);
        Handle handle;
        if (command.get("adv").asBoolean()) {
            CreateAdvBuilder adv = builder.makeAdv();
            handle = (command.hasNonNull("ledger_id") ? adv.withLedgerId(command.get("ledger_id").asLong()) : adv).execute().get();
        } else {
            handle = builder.execute().get();
        }
        return named("handle", handles, handle).put("ledger_id", handle.getId());
    }

    private ObjectNode open(JsonNode command) throws Exception {
        ReadHandle handle = client(command).newOpenLedgerOp()
                .withLedgerId(command.get("ledger_id").asLong())
                .withRecovery(command.get("recovery").asBoolean())
                .withDigestType(DigestType.valueOf(command.get("digest").asText()))
                .withPassword(command.get("password").binaryValue())
                .execute()
                .get();
        ObjectNode answer = named("handle", handles, handle);
        answer.setAll(state(handle));
        return answer;
    }

    private ObjectNode list(JsonNode command) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode ids = answer.putArray("ledger_ids");
        try (ListLedgersResult found = client(command).newListLedgersOp().execute().get()) {
            for (long id : found.toIterable()) {
                ids.add(id);
            }
        }
        return answer;
    }

    private ObjectNode describe(LedgerMetadata metadata) {
        ObjectNode answer = JSON.createObjectNode();
        answer.put("ensemble_size", metadata.getEnsembleSize());
        answer.put("write_quorum", metadata.getWriteQuorumSize());
        answer.put("ack_quorum", metadata.getAckQuorumSize());
        answer.put("state", metadata.getState().name());
        answer.put("last_entry_id", metadata.getLastEntryId());
        answer.put("length", metadata.getLength());
        answer.put("digest", metadata.getDigestType().name());
        answer.put("password", metadata.hasPassword() ? metadata.getPassword() : new byte[0]);
        answer.put("ctime_ms", metadata.getCtime());
        answer.put("creator_token", metadata.getCToken());
        answer.put("format_version", metadata.getMetadataFormatVersion());
        ObjectNode custom = answer.putObject("custom");
        metadata.getCustomMetadata().forEach(custom::put);
        ObjectNode segments = answer.putObject("segments");
        for (Map.Entry<Long, ? extends List<BookieId>> segment : metadata.getAllEnsembles().entrySet()) {
            ArrayNode ensemble = segments.putArray(String.valueOf(segment.getKey()));
            segment.getValue().forEach(bookie -> ensemble.add(bookie.toString()));
        }
        return answer;
    }

    private ObjectNode state(Handle handle) {
        ObjectNode answer = JSON.createObjectNode();
        answer.put("ledger_id", handle.getId());
        ReadHandle readable = (ReadHandle) handle;
        answer.put("last_add_confirmed", readable.getLastAddConfirmed());
        answer.put("length", readable.getLength());
        answer.put("closed", readable.isClosed());
        if (handle instanceof LedgerHandle) {
            answer.put("last_add_pushed", ((LedgerHandle) handle).getLastAddPushed());
        }
        return answer;
    }

    private ObjectNode append(JsonNode command) throws Exception {
        byte[] payload = command.get("payload").binaryValue();
        ObjectNode answer = JSON.createObjectNode();
        if (command.hasNonNull("entry_id")) {
            return answer.put("entry_id", ((WriteAdvHandle) handle(command)).writeAsync(command.get("entry_id").asLong(), payload).get());
        }
        return answer.put("entry_id", ((WriteHandle) handle(command)).appendAsync(payload).get());
    }

    private ObjectNode appendMany(JsonNode command) throws Exception {
        Handle handle = handle(command);
        Appends appends = new Appends();
        long first = command.get("first").asLong();
        for (int index = 0; index < command.get("count").asInt(); index++) {
            byte[] payload = Payload.of(command.get("seed").asLong(), first + index, command.get("size").asInt());
            appends.add(handle instanceof WriteAdvHandle && command.get("adv").asBoolean()
                    ? ((WriteAdvHandle) handle).writeAsync(first + index, payload)
                    : ((WriteHandle) handle).appendAsync(payload));
        }
        return command.get("wait").asBoolean() ? appends.outcome() : named("pending", pending, appends);
    }

    private ObjectNode lastConfirmed(String kind, ReadHandle handle) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        switch (kind) {
            case "quorum":
                return answer.put("last_add_confirmed", handle.readLastAddConfirmed());
            case "try":
                return answer.put("last_add_confirmed", handle.tryReadLastAddConfirmed());
            case "explicit":
                return answer.put("last_add_confirmed", ((LedgerHandle) handle).readExplicitLastConfirmed());
            default:
                throw new IllegalArgumentException("no kind " + kind);
        }
    }

    private ObjectNode waitForEntry(JsonNode command, ReadHandle handle) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        try (LastConfirmedAndEntry found = handle.readLastAddConfirmedAndEntry(command.get("entry_id").asLong(),
                command.get("timeout_ms").asLong(), command.get("parallel").asBoolean())) {
            answer.put("last_add_confirmed", found.getLastAddConfirmed());
            if (found.hasEntry()) {
                addEntry(answer.putArray("entries"), found.getEntry());
            } else {
                answer.putArray("entries");
            }
        }
        return answer;
    }

    /** Follows a ledger by long polls from one entry to another, or to the ledger's end where that comes first. */
    private ObjectNode tail(JsonNode command, ReadHandle handle) throws Exception {
        long next = command.get("first").asLong();
        long last = command.get("last").asLong();
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(command.get("within_ms").asLong());
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode entries = answer.putArray("entries");
        long polls = 0;
        while (next <= last && System.nanoTime() < until && !(handle.isClosed() && next > handle.getLastAddConfirmed())) {
            polls++;
            try (LastConfirmedAndEntry found = handle.readLastAddConfirmedAndEntry(next, command.get("timeout_ms").asLong(), false)) {
                if (found.hasEntry()) {
                    addEntry(entries, found.getEntry());
                    next++;
                }
            }
        }
        return answer.put("polls", polls).put("closed", handle.isClosed());
    }

    private ObjectNode entries(CompletableFuture<LedgerEntries> reading) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode list = answer.putArray("entries");
        try (LedgerEntries found = reading.get()) {
            for (LedgerEntry entry : found) {
                addEntry(list, entry);
            }
        }
        return answer;
    }

    private void addEntry(ArrayNode list, LedgerEntry entry) {
        ObjectNode item = list.addObject();
        item.put("entry_id", entry.getEntryId());
        item.put("length", entry.getLength());
        item.put("payload", Base64.getEncoder().encodeToString(entry.getEntryBytes()));
    }

    private <T> ObjectNode named(String kind, ConcurrentMap<Long, T> things, T thing) {
        long name = names.incrementAndGet();
        things.put(name, thing);
        return JSON.createObjectNode().put(kind, name);
    }

    private BookKeeper client(JsonNode command) {
        return clients.get(command.get("client").asLong());
    }

    private Handle handle(JsonNode command) {
        return handles.get(command.get("handle").asLong());
    }

    /** Appends on their way, in the order in which they were made. */
    private static final class Appends {
        private final List<CompletableFuture<Long>> futures = new ArrayList<>();

        void add(CompletableFuture<Long> future) {
            futures.add(future);
        }

        ObjectNode outcome() throws Exception {
            ObjectNode answer = JSON.createObjectNode();
            ArrayNode ids = answer.putArray("entry_ids");
            ArrayNode errors = answer.putArray("errors");
            for (CompletableFuture<Long> future : futures) {
                try {
                    ids.add(future.get());
                    errors.addNull();
                } catch (java.util.concurrent.ExecutionException failure) {
                    ids.addNull();
                    errors.add(Driver.describe(failure));
                }
            }
            return answer;
        }
    }
}
