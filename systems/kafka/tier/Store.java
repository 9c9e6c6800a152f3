package wrackline;

import java.io.IOException;
import java.io.InputStream;
import java.util.Map;

/**
 * Where a tier keeps what it is given: objects by name, each whole or not there at all. What is not there is a
 * {@link java.nio.file.NoSuchFileException}.
 */
interface Store {
    /** Settings are those of rsm.config, without that prefix. */
    void configure(Map<String, ?> configs) throws IOException;

    void put(String name, byte[] bytes) throws IOException;

    /** From one position to another, both included, as far as there are bytes. */
    InputStream get(String name, long first, long last) throws IOException;

    long ageMs(String name) throws IOException;

    /** All objects whose names begin so; false: there was none. */
    boolean delete(String prefix) throws IOException;
}
