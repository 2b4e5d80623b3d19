package interop;

import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.ReadHandle;

/** What this release has and others lack. */
final class Release {
    static final boolean BATCH_READS = true;

    private Release() {
    }

    static CompletableFuture<LedgerEntries> batchRead(ReadHandle handle, long first, int maxCount, long maxBytes, boolean unconfirmed) {
        return unconfirmed
                ? handle.batchReadUnconfirmedAsync(first, maxCount, maxBytes)
                : handle.batchReadAsync(first, maxCount, maxBytes);
    }
}
