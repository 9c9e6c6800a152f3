// Does with franz-go what a broker of ours serves, and what it refuses, so that the requests can be recorded. Started by
// record.py, with the bootstrap servers as its only argument.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const topic = "of-franz-go"

func client(more ...kgo.Opt) *kgo.Client {
	options := append([]kgo.Opt{
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ClientID("franz-go"),
		kgo.RetryTimeout(5 * time.Second),
	}, more...)
	made, err := kgo.NewClient(options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return made
}

// A refusal is an answer too: what counts is that it was asked.
func say(what string, err error) {
	if err != nil {
		fmt.Printf("%s: %v\n", what, err)
	} else {
		fmt.Printf("%s: done\n", what)
	}
}

func shortly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 8*time.Second)
}

func produce() {
	producer := client(kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer producer.Close()
	for i := 0; i < 20; i++ {
		record := &kgo.Record{Key: []byte("key"), Value: []byte(fmt.Sprintf("value %d", i))}
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: "header", Value: []byte("of Go")})
		producer.Produce(context.Background(), record, nil)
	}
	ctx, cancel := shortly()
	defer cancel()
	say("produce", producer.Flush(ctx))
}

func consume() {
	first := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	reader := client(kgo.ConsumePartitions(first))
	defer reader.Close()
	for i := 0; i < 4; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		fmt.Println("read", reader.PollFetches(ctx).NumRecords())
		cancel()
	}
}

func administer(made *kgo.Client) {
	admin := kadm.NewClient(made)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := admin.DescribeTopicConfigs(ctx, topic)
	say("describe settings", err)
	_, err = admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("86400000")}}, topic)
	say("change settings", err)
	_, err = admin.ListEndOffsets(ctx, topic)
	say("end offsets", err)
	_, err = admin.ListOffsetsAfterMilli(ctx, 1000, topic)
	say("offsets by time", err)
	_, err = admin.UpdatePartitions(ctx, 3, topic)
	say("more partitions", err)
	first := kadm.TopicsSet{}
	first.Add(topic, 0)
	_, err = admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, first)
	say("elect", err)
	reassign := kadm.AlterPartitionAssignmentsReq{}
	reassign.Assign(topic, 0, []int32{2, 3, 1})
	_, err = admin.AlterPartitionAssignments(ctx, reassign)
	say("reassign", err)
	_, err = admin.ListPartitionReassignments(ctx, first)
	say("reassignments", err)
	before := kadm.Offsets{}
	before.AddOffset(topic, 0, 2, -1)
	_, err = admin.DeleteRecords(ctx, before)
	say("delete records", err)
	_, err = admin.OffsetForLeaderEpoch(ctx, epochs())
	say("epochs", err)
	_, err = admin.BrokerMetadata(ctx)
	say("brokers", err)
	_, err = admin.FetchOffsets(ctx, "some")
	say("committed", err)
	_, err = kmsg.NewPtrDescribeClusterRequest().RequestWith(ctx, made)
	say("describe cluster", err)
	describe := kmsg.NewPtrDescribeTopicPartitionsRequest()
	asked := kmsg.NewDescribeTopicPartitionsRequestTopic()
	asked.Topic = topic
	describe.Topics = append(describe.Topics, asked)
	_, err = describe.RequestWith(ctx, made)
	say("describe topic", err)
	gone := kmsg.NewPtrUnregisterBrokerRequest()
	gone.BrokerID = 77
	_, err = gone.RequestWith(ctx, made)
	say("unregister", err)
	quorum := kmsg.NewPtrDescribeQuorumRequest()
	metadata := kmsg.NewDescribeQuorumRequestTopic()
	metadata.Topic = "__cluster_metadata"
	metadata.Partitions = append(metadata.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	quorum.Topics = append(quorum.Topics, metadata)
	_, err = quorum.RequestWith(ctx, made)
	say("quorum", err)
}

func epochs() kadm.OffsetForLeaderEpochRequest {
	asked := kadm.OffsetForLeaderEpochRequest{}
	asked.Add(topic, 0, 1)
	return asked
}

func beRefused() {
	member := client(kgo.ConsumerGroup("some"), kgo.ConsumeTopics(topic))
	ctx, cancel := shortly()
	fetches := member.PollFetches(ctx)
	cancel()
	say("subscribe", fetches.Err())
	member.Close()
	producer := client(kgo.TransactionalID("some"), kgo.DefaultProduceTopic(topic))
	ctx, cancel = shortly()
	err := producer.BeginTransaction()
	if err == nil {
		err = producer.ProduceSync(ctx, kgo.StringRecord("never")).FirstErr()
	}
	cancel()
	say("transaction", err)
	producer.Close()
}

func main() {
	made := client()
	defer made.Close()
	ctx, cancel := shortly()
	answer, err := kadm.NewClient(made).CreateTopic(ctx, 2, 3, map[string]*string{"min.insync.replicas": kadm.StringPtr("2")}, topic)
	cancel()
	if err != nil || (answer.Err != nil && answer.Err != kerr.TopicAlreadyExists) {
		fmt.Fprintln(os.Stderr, "create topic:", err, answer.Err)
		os.Exit(1)
	}
	produce()
	consume()
	administer(made)
	beRefused()
	ctx, cancel = shortly()
	defer cancel()
	_, err = kadm.NewClient(made).DeleteTopics(ctx, topic)
	say("delete topic", err)
}
