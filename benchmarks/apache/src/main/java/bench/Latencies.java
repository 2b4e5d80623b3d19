package bench;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;

/** Latencies of one measurement, every one of them, in nanoseconds. Safe for callers on several threads. */
final class Latencies {
    private static final double PER_MS = 1e6;

    private long[] kept = new long[1 << 16];
    private int count;

    synchronized void add(long nanoseconds) {
        if (count == kept.length) {
            kept = Arrays.copyOf(kept, 2 * count);
        }
        kept[count++] = nanoseconds;
    }

    synchronized int count() {
        return count;
    }

    /** Puts count, percentiles and maximum, in milliseconds; the same ranks as {@code figures.summary} in Python. */
    synchronized void describe(ObjectNode answer) {
        Arrays.sort(kept, 0, count);
        answer.put("count", count);
        if (count > 0) {
            answer.put("p50_ms", kept[rank(0.5)] / PER_MS);
            answer.put("p99_ms", kept[rank(0.99)] / PER_MS);
            answer.put("p999_ms", kept[rank(0.999)] / PER_MS);
            answer.put("max_ms", kept[count - 1] / PER_MS);
        }
    }

    private int rank(double share) {
        return Math.max(0, (int) Math.ceil(share * count) - 1);
    }
}
