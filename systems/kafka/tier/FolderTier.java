package wrackline;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
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
 * A remote tier (KIP-405) in a folder that all brokers see, and that fails on purpose.
 *
 * <p>{@code segments/TOPIC-PARTITION/BASE-ID.KIND} has what was copied. A fault is a file {@code control/FAULT-BROKER}
 * of one line, "MODE NUMBER CALL,CALL", for as long as it is there; it is read on every call. {@code journal/BROKER}
 * has a line for each call that a fault changed, and for each segment that was copied or deleted: milliseconds, the
 * fault's id or "-", what was done, the call, the segment, its first and last offset, its bytes.
 */
public final class FolderTier implements RemoteStorageManager {
    private static final String COPY = "copy";
    private static final String FETCH = "fetch";
    private static final String DELETE = "delete";

    /** What a fault does to calls: in words, and a number whose meaning the mode knows. */
    private record Fault(String id, String mode, long number, String calls) {
        boolean meets(String call) {
            return ("," + calls + ",").contains("," + call + ",");
        }
    }

    private final Map<String, AtomicLong> counts = new ConcurrentHashMap<>();
    private Path folder;
    private String broker;

    @Override
    public void configure(Map<String, ?> configs) {
        folder = Path.of(String.valueOf(configs.get("dir")));
        broker = String.valueOf(configs.get("broker.id"));
        try {
            for (String name : new String[] {"segments", "control", "journal"}) {
                Files.createDirectories(folder.resolve(name));
            }
        } catch (IOException error) {
            throw new IllegalArgumentException("the tier's folder " + folder + " cannot be used: " + error, error);
        }
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        disturb(COPY, segment);
        Fault lost = fault("lost", COPY);
        try {
            Path base = base(segment);
            Files.createDirectories(base.getParent());
            put(data.offsetIndex(), base, IndexType.OFFSET.name());
            put(data.timeIndex(), base, IndexType.TIMESTAMP.name());
            put(data.producerSnapshotIndex(), base, IndexType.PRODUCER_SNAPSHOT.name());
            if (data.transactionIndex().isPresent()) {
                put(data.transactionIndex().get(), base, IndexType.TRANSACTION.name());
            }
            ByteBuffer epochs = data.leaderEpochIndex().duplicate();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.get(bytes);
            put(bytes, base, IndexType.LEADER_EPOCH.name());
            if (lost == null) {
                put(data.logSegment(), base, "LOG");
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
        return fetchLogSegment(segment, startPosition, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int startPosition, int endPosition)
            throws RemoteStorageException {
        byte[] all = fetch(segment, "LOG");
        if (startPosition > all.length) {
            throw new RemoteStorageException("position " + startPosition + " is behind the end of the segment");
        }
        int end = (int) Math.min(all.length, (long) endPosition + 1);
        return new ByteArrayInputStream(all, startPosition, Math.max(0, end - startPosition));
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType index) throws RemoteStorageException {
        return new ByteArrayInputStream(fetch(segment, index.name()));
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        disturb(DELETE, segment);
        Path base = base(segment);
        try (DirectoryStream<Path> files = Files.newDirectoryStream(base.getParent(), base.getFileName() + ".*")) {
            for (Path file : files) {
                Files.deleteIfExists(file);
            }
        } catch (NoSuchFileException gone) {
            return; // nothing was stored: the same as deleted
        } catch (IOException error) {
            throw new RemoteStorageException("deletion of " + segment.remoteLogSegmentId() + ": " + error, error);
        }
        write("-", "deleted", DELETE, segment);
    }

    @Override
    public void close() {
    }

    private byte[] fetch(RemoteLogSegmentMetadata segment, String kind) throws RemoteStorageException {
        disturb(FETCH, segment);
        Path file = file(base(segment), kind);
        try {
            Fault stale = fault("stale", FETCH);
            if (stale != null) {
                long age = System.currentTimeMillis() - Files.getLastModifiedTime(file).toMillis();
                if (age < stale.number()) {
                    write(stale.id(), "stale", FETCH, segment);
                    throw new RemoteResourceNotFoundException(stale.id() + ": " + file + " is not seen yet");
                }
            }
            return Files.readAllBytes(file);
        } catch (NoSuchFileException gone) {
            throw new RemoteResourceNotFoundException("there is no " + file);
        } catch (IOException error) {
            throw new RemoteStorageException(file + ": " + error, error);
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

    private Path base(RemoteLogSegmentMetadata segment) {
        return folder.resolve("segments")
                .resolve(place(segment))
                .resolve(String.format("%020d-%s", segment.startOffset(), segment.remoteLogSegmentId().id()));
    }

    private static String place(RemoteLogSegmentMetadata segment) {
        return segment.topicIdPartition().topic() + "-" + segment.topicIdPartition().partition();
    }

    private static Path file(Path base, String kind) {
        return base.resolveSibling(base.getFileName() + "." + kind);
    }

    /** Whole or not at all: a broker that is killed leaves no half of a file under its name. */
    private static void put(byte[] bytes, Path base, String kind) throws IOException {
        Path file = file(base, kind);
        Path half = file.resolveSibling(file.getFileName() + ".half");
        Files.write(half, bytes);
        Files.move(half, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    private static void put(Path from, Path base, String kind) throws IOException {
        put(Files.readAllBytes(from), base, kind);
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
