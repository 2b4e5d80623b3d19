package interop;

import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.ReadHandle;

/** What other releases have and this one lacks. */
final class Release {
    static final boolean BATCH_READS = false;

    private Release() {
    }

    static CompletableFuture<LedgerEntries> batchRead(ReadHandle handle, long first, int maxCount, long maxBytes, boolean unconfirmed) {
        throw new UnsupportedOperationException("this release has no batch reads");
    }
}
