package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.replication.AuditorElector;
import org.apache.bookkeeper.replication.ReplicationWorker;

/** The two halves of BookKeeper's auto-recovery, each on its own: an auditor with its vote, and a replication worker. */
final class Daemons {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final AtomicLong numbers = new AtomicLong();
    private final ConcurrentMap<Long, Stop> running = new ConcurrentHashMap<>();

    /** Ends one daemon. */
    private interface Stop {
        void run() throws Exception;
    }

    ObjectNode startAuditor(JsonNode command) throws Exception {
        AuditorElector elector = new AuditorElector(command.get("bookie_id").asText(), configuration(command));
        elector.start();
        return started(elector::shutdown);
    }

    ObjectNode startWorker(JsonNode command) throws Exception {
        ReplicationWorker worker = new ReplicationWorker(configuration(command));
        worker.start();
        return started(worker::shutdown);
    }

    ObjectNode stop(JsonNode command) throws Exception {
        running.remove(command.get("daemon").asLong()).run();
        return JSON.createObjectNode();
    }

    private ObjectNode started(Stop stop) {
        long number = numbers.incrementAndGet();
        running.put(number, stop);
        return JSON.createObjectNode().put("daemon", number);
    }

    private static ServerConfiguration configuration(JsonNode command) {
        ServerConfiguration configuration = new ServerConfiguration();
        configuration.setMetadataServiceUri(command.get("uri").asText());
        Iterator<Map.Entry<String, JsonNode>> settings = command.get("settings").fields();
        while (settings.hasNext()) {
            Map.Entry<String, JsonNode> setting = settings.next();
            configuration.setProperty(setting.getKey(), setting.getValue().asText());
        }
        return configuration;
    }
}
