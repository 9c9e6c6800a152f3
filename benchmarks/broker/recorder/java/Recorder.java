// Does with Kafka's own clients what a broker of ours serves, and what it refuses, so that the requests can be recorded.
// Started by record.py, with the bootstrap servers as its only argument.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Recorder {
    static final String TOPIC = "of-java";
    static final TopicPartition FIRST = new TopicPartition(TOPIC, 0);
    static String bootstrap;

    static Properties settings(String... more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "java");
        for (int at = 0; at < more.length; at += 2) settings.put(more[at], more[at + 1]);
        return settings;
    }

    /** A refusal is an answer too: what counts is that it was asked. */
    static void attempt(String what, Callable<?> call) {
        try {
            call.call();
            System.out.println(what + ": done");
        } catch (Exception refused) {
            System.out.println(what + ": " + refused.getMessage());
        }
    }

    static void administer(Admin admin) {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "86400000"), AlterConfigOp.OpType.SET);
        attempt("describe cluster", () -> admin.describeCluster().nodes().get());
        attempt("describe topic", () -> admin.describeTopics(List.of(TOPIC)).allTopicNames().get());
        attempt("list topics", () -> admin.listTopics().names().get());
        attempt("describe settings", () -> admin.describeConfigs(List.of(topic, broker)).all().get());
        attempt("change settings", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(set))).all().get());
        attempt("more partitions", () -> admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(3))).all().get());
        attempt("elect", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(FIRST)).all().get());
        attempt("reassign", () -> admin.alterPartitionReassignments(
            Map.of(FIRST, Optional.of(new NewPartitionReassignment(List.of(2, 3, 1))))).all().get());
        attempt("reassignments", () -> admin.listPartitionReassignments().reassignments().get());
        attempt("quorum", () -> admin.describeMetadataQuorum().quorumInfo().get());
        attempt("delete records", () -> admin.deleteRecords(Map.of(FIRST, RecordsToDelete.beforeOffset(2))).all().get());
        attempt("groups", () -> admin.listConsumerGroupOffsets("some").all().get());
        attempt("unregister", () -> admin.unregisterBroker(77).all().get());
    }

    static void produce() throws Exception {
        Properties settings = settings("linger.ms", "20", "compression.type", "lz4");
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < 20; i++) {
                ProducerRecord<byte[], byte[]> sent = new ProducerRecord<>(TOPIC, 0, "key".getBytes(), ("value " + i).getBytes());
                sent.headers().add("header", "of java".getBytes());
                producer.send(sent);
            }
            producer.flush();
        }
    }

    static void consume() {
        try (var consumer = new KafkaConsumer<>(settings(), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(FIRST));
            consumer.seekToBeginning(List.of(FIRST));
            for (int i = 0; i < 4; i++) System.out.println("read " + consumer.poll(Duration.ofMillis(500)).count());
            consumer.endOffsets(List.of(FIRST));
            consumer.offsetsForTimes(Map.of(FIRST, 1_000L));
        }
    }

    static void beRefused() {
        for (String protocol : List.of("classic", "consumer")) {
            Properties settings = settings("group.id", "some", "group.protocol", protocol);
            try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(TOPIC));
                attempt("subscribe, " + protocol, () -> consumer.poll(Duration.ofSeconds(5)));
            }
        }
        Properties settings = settings("group.id", "some", "enable.auto.commit", "false");
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(FIRST));
            attempt("committed", () -> consumer.committed(Set.of(FIRST), Duration.ofSeconds(5)));
            consumer.seek(FIRST, 1);
            attempt("commit", () -> { consumer.commitSync(Duration.ofSeconds(5)); return null; });
        }
        Properties inTransaction = settings("transactional.id", "some", "max.block.ms", "5000");
        try (var producer = new KafkaProducer<>(inTransaction, new ByteArraySerializer(), new ByteArraySerializer())) {
            attempt("transaction", () -> { producer.initTransactions(); return null; });
        } catch (KafkaException closed) {
            System.out.println("closing: " + closed.getMessage());
        }
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (Admin admin = Admin.create(settings())) {
            admin.createTopics(List.of(new NewTopic(TOPIC, 2, (short) 3).configs(Map.of("min.insync.replicas", "2")))).all().get();
            produce();
            consume();
            administer(admin);
            beRefused();
            attempt("delete topic", () -> admin.deleteTopics(List.of(TOPIC)).all().get());
        }
    }
}
