package wrackline;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * A remote tier (KIP-405) that fails on purpose, over a {@link Store} of any kind.
 *
 * <p>The object {@code segments/TOPIC-PARTITION/BASE-ID.KIND} has what was copied. Orders and answers are files of a
 * folder that all brokers see. A fault is a file {@code control/FAULT-BROKER} of one line, "MODE NUMBER CALL,CALL",
 * for as long as it is there; it is read on every call. {@code journal/BROKER} has a line for each call that a fault
 * changed, and for each segment that was copied, fetched or deleted: milliseconds, the fault's id or "-", what was
 * done, the call, the segment, its first and last offset, its bytes.
 */
public final class FaultyTier implements RemoteStorageManager {
    private static final String COPY = "copy";
    private static final String FETCH = "fetch";
    private static final String DELETE = "delete";
    private static final String LOG = "LOG";

    /** What a fault does to calls: in words, and a number whose meaning the mode knows. */
    private record Fault(String id, String mode, long number, String calls) {
        boolean meets(String call) {
            return ("," + calls + ",").contains("," + call + ",");
        }
    }

    private final Map<String, AtomicLong> counts = new ConcurrentHashMap<>();
    private Store store;
    private Path folder;
    private String broker;

    @Override
    public void configure(Map<String, ?> configs) {
        folder = Path.of(String.valueOf(configs.get("dir")));
        broker = String.valueOf(configs.get("broker.id"));
        try {
            for (String name : new String[] {"control", "journal"}) {
                Files.createDirectories(folder.resolve(name));
            }
            // By its name: the class of a store is there only where its libraries are.
            store = (Store) Class.forName(String.valueOf(configs.get("store"))).getDeclaredConstructor().newInstance();
            store.configure(configs);
        } catch (IOException | ReflectiveOperationException error) {
            throw new IllegalArgumentException("the tier in " + folder + " cannot be used: " + error, error);
        }
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        disturb(COPY, segment);
        Fault lost = fault("lost", COPY);
        try {
            put(data.offsetIndex(), segment, IndexType.OFFSET.name());
            put(data.timeIndex(), segment, IndexType.TIMESTAMP.name());
            put(data.producerSnapshotIndex(), segment, IndexType.PRODUCER_SNAPSHOT.name());
            if (data.transactionIndex().isPresent()) {
                put(data.transactionIndex().get(), segment, IndexType.TRANSACTION.name());
            }
            ByteBuffer epochs = data.leaderEpochIndex().duplicate();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.get(bytes);
            store.put(object(segment, IndexType.LEADER_EPOCH.name()), bytes);
            if (lost == null) {
                put(data.logSegment(), segment, LOG);
            }
        } catch (IOException error) {
            throw new RemoteStorageException("copy of " + segment.remoteLogSegmentId() + ": " + error, error);
        }
        write(lost == null ? "-" : lost.id(), lost == null ? "stored" : "lost", COPY, segment);
        Fault doubled = fault("doubled", COPY);
        if (doubled != null) {
            write(doubled.id(), "doubled", COPY, segment);
            throw new RemoteStorageException(doubled.id() + ": the segment was stored, and the answer is an error");
        }
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int startPosition)
            throws RemoteStorageException {
        return read(segment, LOG, startPosition, Long.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int startPosition, int endPosition)
            throws RemoteStorageException {
        return read(segment, LOG, startPosition, endPosition);
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType index) throws RemoteStorageException {
        return read(segment, index.name(), 0, Long.MAX_VALUE);
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        disturb(DELETE, segment);
        try {
            if (!store.delete(name(segment) + ".")) {
                return; // nothing was stored: the same as deleted
            }
        } catch (IOException error) {
            throw new RemoteStorageException("deletion of " + segment.remoteLogSegmentId() + ": " + error, error);
        }
        write("-", "deleted", DELETE, segment);
    }

    @Override
    public void close() {
    }

    private InputStream read(RemoteLogSegmentMetadata segment, String kind, long first, long last)
            throws RemoteStorageException {
        disturb(FETCH, segment);
        String object = object(segment, kind);
        try {
            Fault stale = fault("stale", FETCH);
            if (stale != null && store.ageMs(object) < stale.number()) {
                write(stale.id(), "stale", FETCH, segment);
                throw new RemoteResourceNotFoundException(stale.id() + ": " + object + " is not seen yet");
            }
            InputStream result = store.get(object, first, last);
            if (kind.equals(LOG)) {
                write("-", "fetched", FETCH, segment);
            }
            return result;
        } catch (NoSuchFileException gone) {
            throw new RemoteResourceNotFoundException("there is no " + object);
        } catch (IOException error) {
            throw new RemoteStorageException(object + ": " + error, error);
        }
    }

    /** The faults that any call may meet: it is slow, or it fails before anything is done. */
    private void disturb(String call, RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        Fault slow = fault("slow", call);
        if (slow != null) {
            write(slow.id(), "slow", call, segment);
            try {
                Thread.sleep(slow.number());
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
                throw new RemoteStorageException("interrupted", ended);
            }
        }
        Fault failing = fault("failing", call);
        if (failing != null
                && counts.computeIfAbsent(failing.id(), id -> new AtomicLong()).getAndIncrement() % failing.number()
                        == 0) {
            write(failing.id(), "failing", call, segment);
            throw new RemoteStorageException(failing.id() + ": the tier fails on purpose");
        }
    }

    /** The first fault of a mode that is in force at this broker and meets such calls; null: none does. */
    private Fault fault(String mode, String call) {
        Map<String, Fault> found = new HashMap<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder.resolve("control"), "*-" + broker)) {
            for (Path file : files) {
                String[] words = Files.readString(file).trim().split(" ");
                String name = file.getFileName().toString();
                String id = name.substring(0, name.lastIndexOf('-'));
                if (words.length == 3) {
                    found.put(words[0], new Fault(id, words[0], Long.parseLong(words[1]), words[2]));
                }
            }
        } catch (IOException gone) {
            return null; // it ended just now
        }
        Fault result = found.get(mode);
        return result != null && result.meets(call) ? result : null;
    }

    private static String name(RemoteLogSegmentMetadata segment) {
        return String.format(
                "segments/%s/%020d-%s", place(segment), segment.startOffset(), segment.remoteLogSegmentId().id());
    }

    private static String object(RemoteLogSegmentMetadata segment, String kind) {
        return name(segment) + "." + kind;
    }

    private static String place(RemoteLogSegmentMetadata segment) {
        return segment.topicIdPartition().topic() + "-" + segment.topicIdPartition().partition();
    }

    private void put(Path from, RemoteLogSegmentMetadata segment, String kind) throws IOException {
        store.put(object(segment, kind), Files.readAllBytes(from));
    }

    private synchronized void write(String fault, String done, String call, RemoteLogSegmentMetadata segment) {
        String line = String.format("%d %s %s %s %s %d %d %d%n", System.currentTimeMillis(), fault, done, call,
                place(segment), segment.startOffset(), segment.endOffset(), segment.segmentSizeInBytes());
        try {
            Files.write(folder.resolve("journal").resolve(broker), line.getBytes(StandardCharsets.UTF_8),
                    StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new IllegalStateException("the tier's journal: " + error, error);
        }
    }
}
