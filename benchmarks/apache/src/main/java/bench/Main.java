package bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * BookKeeper's client under measurement: reads one command a line from standard input, carries it out, and answers with one line.
 *
 * <p>A command is {@code {"do": "append", …}}; its answer is {@code {"ok": {…}}} or {@code {"error": "…"}}. One at a time; the process
 * ends with its standard input.
 */
public final class Main {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8.name());
        // Nothing that a library prints may stand between the answers.
        System.setOut(System.err);
        Commands commands = new Commands();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode command = JSON.readTree(line);
                answer.set("ok", commands.run(command.get("do").asText(), command));
            } catch (Exception failure) {
                failure.printStackTrace();
                answer.put("error", failure.toString());
            }
            answers.println(answer);
        }
        // Clients that were left open have threads that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }
}
