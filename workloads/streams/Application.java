import java.io.FileInputStream;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.zip.CRC32;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * One instance of the application that the workload "streams" runs: it counts the records of each key in a state
 * store, and writes every record to the output topic with its count. Payloads are those of workloads/payload.py.
 *
 * Arguments: a file of properties of Kafka Streams, the input topic, the output topic, the kind of store (memory
 * or rocksdb). It ends when its standard input does.
 */
public class Application {
    private static final int CHECKSUM = 4, BODY = 8, ATTEMPT = 24, TOPIC = 29, STATE = 45;
    private static final byte OUTPUT = 14;
    private static final String STORE = "counts";

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            properties.load(file);
        }
        String input = arguments[1], output = arguments[2];
        giveInternalTopicsTheSettingsOf(input, properties);
        KafkaStreams streams = new KafkaStreams(topology(input, output, arguments[3].equals("rocksdb")), properties);
        streams.setUncaughtExceptionHandler(wrong -> {
            wrong.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(8))));
        streams.start();
        while (System.in.read() >= 0) {
            // nothing is said there
        }
        System.exit(0);
    }

    private static void giveInternalTopicsTheSettingsOf(String input, Properties properties) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, input);
        Properties asked = new Properties();
        asked.put("bootstrap.servers", properties.get("bootstrap.servers"));
        try (Admin admin = Admin.create(asked)) {
            int replicas = admin.describeTopics(List.of(input)).allTopicNames().get().get(input)
                .partitions().get(0).replicas().size();
            String least = admin.describeConfigs(List.of(topic)).all().get().get(topic)
                .get("min.insync.replicas").value();
            properties.put("replication.factor", Integer.toString(replicas));
            properties.put("topic.min.insync.replicas", least);
        }
    }

    private static Topology topology(String input, String output, boolean onDisk) {
        var bytes = Serdes.ByteArray();
        var supplier = onDisk ? Stores.persistentKeyValueStore(STORE) : Stores.inMemoryKeyValueStore(STORE);
        return new Topology()
            .addSource("input", bytes.deserializer(), bytes.deserializer(), input)
            .addProcessor("count", () -> new Count(output), "input")
            .addStateStore(Stores.keyValueStoreBuilder(supplier, bytes, Serdes.Long()), "count")
            .addSink("output", output, bytes.serializer(), bytes.serializer(), new SamePartition(), "count");
    }

    /** The count of a key's records, in the order of the input. */
    private static final class Count implements Processor<byte[], byte[], byte[], byte[]> {
        private final int topic;
        private ProcessorContext<byte[], byte[]> context;
        private KeyValueStore<byte[], Long> counts;

        Count(String output) {
            CRC32 name = new CRC32();
            name.update(output.getBytes());
            topic = (int) name.getValue();
        }

        @Override
        public void init(ProcessorContext<byte[], byte[]> given) {
            context = given;
            counts = given.getStateStore(STORE);
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            Long before = counts.get(record.key());
            long count = before == null ? 1 : before + 1;
            counts.put(record.key(), count);
            context.forward(record.withValue(counted(record.value(), count)));
        }

        private byte[] counted(byte[] value, long count) {
            byte[] result = value.clone();
            ByteBuffer buffer = ByteBuffer.wrap(result);
            buffer.put(ATTEMPT, OUTPUT).putInt(TOPIC, topic).putLong(STATE, count);
            CRC32 sum = new CRC32();
            sum.update(result, BODY, result.length - BODY);
            buffer.putInt(CHECKSUM, (int) sum.getValue());
            return result;
        }
    }

    /** The partition that the payload names. The interface had one method up to 3.9, and has the other since 3.4. */
    private static final class SamePartition implements StreamPartitioner<byte[], byte[]> {
        public Integer partition(String topic, byte[] key, byte[] value, int partitions) {
            return ByteBuffer.wrap(value).getInt(ATTEMPT + 1);
        }

        public Optional<Set<Integer>> partitions(String topic, byte[] key, byte[] value, int partitions) {
            return Optional.of(Set.of(partition(topic, key, value, partitions)));
        }
    }
}
