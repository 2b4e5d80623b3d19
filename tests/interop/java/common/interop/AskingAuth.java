package interop;

import java.nio.charset.StandardCharsets;
import org.apache.bookkeeper.auth.AuthCallbacks;
import org.apache.bookkeeper.auth.AuthToken;
import org.apache.bookkeeper.auth.BookieAuthProvider;
import org.apache.bookkeeper.client.api.BKException;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.proto.BookieConnectionPeer;

/**
 * An authentication of two steps, for bookies: whoever begins with anything is asked {@code "password?"}, and is let in with
 * {@code "sesame"}. The bookie refuses any other answer with a token that says {@code "no"}.
 */
public final class AskingAuth implements BookieAuthProvider.Factory {
    @Override
    public void init(ServerConfiguration configuration) {
        // Nothing to prepare.
    }

    @Override
    public String getPluginName() {
        return "interop";
    }

    @Override
    public BookieAuthProvider newProvider(BookieConnectionPeer peer, AuthCallbacks.GenericCallback<Void> complete) {
        return new BookieAuthProvider() {
            private boolean asked;

            @Override
            public void process(AuthToken token, AuthCallbacks.GenericCallback<AuthToken> reply) {
                String said = new String(token.getData(), StandardCharsets.UTF_8);
                if (!asked) {
                    asked = true;
                    reply.operationComplete(BKException.Code.OK, tokenOf("password?"));
                } else if (said.equals("sesame")) {
                    reply.operationComplete(BKException.Code.OK, tokenOf("welcome"));
                    complete.operationComplete(BKException.Code.OK, null);
                } else {
                    reply.operationComplete(BKException.Code.UnauthorizedAccessException, tokenOf("no"));
                    complete.operationComplete(BKException.Code.UnauthorizedAccessException, null);
                }
            }
        };
    }

    private static AuthToken tokenOf(String text) {
        return AuthToken.wrap(text.getBytes(StandardCharsets.UTF_8));
    }
}
