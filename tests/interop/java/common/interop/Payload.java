package interop;

/** Payloads that both sides can make: {@code driver.payload} in Python gives the same bytes. */
final class Payload {
    private Payload() {
    }

    static byte[] of(long seed, long index, int size) {
        byte[] payload = new byte[size];
        long start = seed * 101 + index * 31;
        for (int position = 0; position < size; position++) {
            payload[position] = (byte) (start + position * 7L);
        }
        return payload;
    }
}
