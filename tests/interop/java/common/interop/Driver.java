package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.bookkeeper.client.api.BKException;

/**
 * Reads commands from standard input, one JSON object a line, and answers each with one line on standard output.
 *
 * <p>A command is {@code {"id": 7, "do": "append", …}}; its answer is {@code {"id": 7, "ok": {…}}} or
 * {@code {"id": 7, "error": {"name": …, "code": …, "message": …}}}. Commands run side by side, so answers come in any order and a
 * command that waits holds up no other. The driver ends when its standard input does.
 */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int NO_CODE = 1;

    private final PrintStream answers;
    private final Commands commands = new Commands();
    private final ExecutorService workers = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "command");
        thread.setDaemon(true);
        return thread;
    });

    private Driver(PrintStream answers) {
        this.answers = answers;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8.name());
        // Nothing that a library prints may stand between the answers.
        System.setOut(System.err);
        new Driver(answers).run();
        // Clients that were left open have threads that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private void run() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode command = JSON.readTree(line);
            workers.execute(() -> answer(command));
        }
    }

    private void answer(JsonNode command) {
        ObjectNode answer = JSON.createObjectNode();
        answer.set("id", command.get("id"));
        try {
            answer.set("ok", commands.run(command.get("do").asText(), command));
        } catch (Throwable failure) {
            answer.set("error", describe(failure));
        }
        synchronized (answers) {
            answers.println(answer);
        }
    }

    static ObjectNode describe(Throwable failure) {
        Throwable cause = failure;
        while ((cause instanceof ExecutionException || cause instanceof CompletionException) && cause.getCause() != null) {
            cause = cause.getCause();
        }
        int code = cause instanceof BKException ? ((BKException) cause).getCode() : NO_CODE;
        ObjectNode error = JSON.createObjectNode();
        error.put("code", code);
        error.put("name", cause.getClass().getSimpleName());
        error.put("message", String.valueOf(cause.getMessage()));
        if (!(cause instanceof BKException)) {
            cause.printStackTrace();
        }
        return error;
    }
}
