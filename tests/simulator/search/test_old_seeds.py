"""Runs that once ended in a violation and must not again. Each says what was wrong then."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from wrackline.simulator.cli import simulate

FAST = (
    "--pairs 0.3 --chains 0.4 --broker-setting heartbeat_interval_ms=133 "
    "--controller-setting session_timeout_ms=800"
)

OLD = {
    "a follower fetches seldom, and a deletion waits for it": (
        "--seed 150317 --seconds 15 --load bursts,pipeline,wrap --weak 1 --produce-every-ms 120 "
        "--ask-every-ms 200 --faults kill,power,clean,kill-midway,power-midway,pause,isolate,cut,"
        "cut-one-way,cut-controller,lag,hold-alter-response,hold-fetch-request,hold-metadata,"
        "hold-heartbeat,skew,controller-kill,controller-power,controller-isolate,controller-deaf,"
        "elect,move-leader,reassign,reassign-cancel,delete-records,churn-topic,hold-any,"
        "controller-midway,flush-error --fault-every-ms 2500 --pairs 0.1 --chains 0.8 --drills "
        "--broker-setting heartbeat_interval_ms=133 --broker-setting replica_lag_time_max_ms=6000 "
        "--broker-setting replica_fetch_wait_max_ms=300 --broker-setting "
        "replica_fetch_backoff_ms=200 --broker-setting request_timeout_ms=1000 --broker-setting "
        "flush_mode=every-write --broker-setting flush_messages=7 --broker-setting flush_ms=20 "
        "--broker-setting replica_fetch_max_bytes=5000 --broker-setting "
        "replica_fetch_response_max_bytes=10000 --controller-setting session_timeout_ms=800"
    ),
    "MinISR is lowered and raised in one commit": (
        "--seed 150255 --seconds 6 --idempotent --load bursts,times --produce-every-ms 120 "
        "--ask-every-ms 200 --faults kill,power,clean,kill-midway,power-midway,pause,isolate,cut,"
        "cut-one-way,cut-controller,lag,hold-alter-request,hold-alter-response,hold-fetch-response,"
        "hold-fetch-request,hold-metadata,hold-produce-response,hold-heartbeat,skew,disk-error,"
        "disk-full,controller-kill,controller-power,controller-pause,controller-isolate,"
        "controller-deaf,elect,move-leader,reassign,reassign-cancel,min-isr,delete-records,"
        "churn-topic,hold-any,controller-midway,flush-error --fault-every-ms 400 --pairs 0.3 "
        "--chains 0.4 --drills --broker-setting heartbeat_interval_ms=133 --broker-setting "
        "replica_lag_time_max_ms=6000 --broker-setting replica_fetch_wait_max_ms=100 "
        "--broker-setting replica_fetch_backoff_ms=200 --broker-setting request_timeout_ms=1000 "
        "--controller-setting session_timeout_ms=800 --controller-setting producer_id_block=2 "
        "--no-tcp"
    ),
    "a snapshot takes the place of what a drill fetches": (
        "--seed 150253 --seconds 15 --brokers 4 --producers 1 --idempotent --load bursts,wrap --weak "
        "1 --produce-every-ms 120 --ask-every-ms 200 --faults kill,power,clean,kill-midway,"
        "power-midway,pause,isolate,cut,cut-one-way,cut-controller,lag,hold-alter-request,"
        "hold-alter-response,hold-fetch-response,hold-fetch-request,hold-metadata,"
        "hold-produce-response,hold-heartbeat,skew,disk-error,disk-full,controller-kill,"
        "controller-power,controller-pause,controller-isolate,controller-deaf,elect,move-leader,"
        "reassign,reassign-cancel,min-isr,delete-records,churn-topic,hold-any,controller-midway,"
        "flush-error --pairs 0.1 --chains 0.8 --drills --broker-setting heartbeat_interval_ms=133 "
        "--broker-setting replica_lag_time_max_ms=2000 --broker-setting "
        "replica_fetch_wait_max_ms=300 --broker-setting replica_fetch_backoff_ms=200 "
        "--broker-setting request_timeout_ms=1000 --controller-setting session_timeout_ms=800 "
        "--controller-setting placement=striped"
    ),
    "the quorum has no leader yet after a drill of ballots": (
        "--seed 140032 --seconds 6 --brokers 4 --controllers 3 --producers 1 --load batches --weak 1 "
        "--produce-every-ms 120 --ask-every-ms 200 --faults kill,power,clean,kill-midway,"
        "power-midway,pause,isolate,cut,cut-one-way,cut-controller,lag,hold-alter-request,"
        "hold-alter-response,hold-fetch-response,hold-fetch-request,hold-metadata,"
        "hold-produce-response,hold-heartbeat,skew,disk-error,disk-full,controller-kill,"
        "controller-power,controller-pause,controller-isolate,controller-deaf,elect,move-leader,"
        "reassign,reassign-cancel,min-isr,delete-records,churn-topic,hold-any,controller-midway,"
        "flush-error --fault-every-ms 400 --pairs 0.3 --chains 0.4 --drills --broker-setting "
        "heartbeat_interval_ms=250 --broker-setting replica_lag_time_max_ms=2000 --broker-setting "
        "replica_fetch_wait_max_ms=100 --broker-setting replica_fetch_backoff_ms=50 --broker-setting "
        "request_timeout_ms=1000 --broker-setting fetch_max_bytes=600 --broker-setting "
        "num_replica_fetchers=2 --broker-setting max_incremental_fetch_session_cache_slots=1 "
        "--broker-setting min_incremental_fetch_session_eviction_ms=500 --controller-setting "
        "session_timeout_ms=1500 --codec"
    ),
    "a drill begins before the quorum has a leader again": (
        "--seed 140014 --seconds 6 --controllers 3 --profile kraft35 --producers 1 --idempotent "
        "--load retention --produce-every-ms 60 --ask-every-ms 200 --faults kill,power,clean,"
        "kill-midway,power-midway,pause,isolate,cut,cut-one-way,cut-controller,lag,"
        "hold-alter-request,hold-alter-response,hold-fetch-response,hold-fetch-request,hold-metadata,"
        "hold-produce-response,hold-heartbeat,skew,disk-error,disk-full,controller-kill,"
        "controller-power,controller-pause,controller-isolate,controller-deaf,elect,move-leader,"
        "reassign,reassign-cancel,min-isr,delete-records,churn-topic,hold-any,controller-midway,"
        "flush-error --fault-every-ms 400 --pairs 0.3 --chains 0.4 --drills --broker-setting "
        "heartbeat_interval_ms=500 --broker-setting replica_lag_time_max_ms=1000 --broker-setting "
        "replica_fetch_wait_max_ms=100 --broker-setting replica_fetch_backoff_ms=50 --broker-setting "
        "request_timeout_ms=1000 --broker-setting flush_mode=every-write --broker-setting "
        "flush_messages=1 --broker-setting flush_ms=200 --controller-setting session_timeout_ms=3000 "
        "--controller-setting unclean_recovery_strategy=balanced --controller-setting "
        "leader_imbalance_check_interval_ms=2000"
    ),
    "a snapshot goes while pieces of it are asked for": (
        "--seed 131651 --seconds 15 --controllers 3 --partitions 2 --idempotent --load pipeline "
        "--weak 1 --produce-every-ms 60 --ask-every-ms 200 --faults kill,power,clean,kill-midway,"
        "power-midway,cut-one-way,cut-controller,lag,hold-alter-response,hold-fetch-request,"
        "hold-metadata,hold-produce-response,hold-heartbeat,skew,disk-error,controller-power,"
        "controller-pause,controller-isolate,elect,move-leader,reassign-cancel,min-isr,churn-topic,"
        "hold-any,controller-midway --fault-every-ms 2500 --pairs 0.1 --chains 0.8 --drills "
        "--broker-setting heartbeat_interval_ms=500 --broker-setting replica_lag_time_max_ms=6000 "
        "--broker-setting replica_fetch_wait_max_ms=500 --broker-setting replica_fetch_backoff_ms=50 "
        "--broker-setting request_timeout_ms=1000 --controller-setting session_timeout_ms=3000 "
        "--controller-setting unclean_recovery_strategy=manual --controller-setting placement=striped"
    ),
    "a producer's time of -1 asks for the log's end": (
        "--seed 130139 --seconds 15 --brokers 5 --profile kip101 --partitions 2 --load batches,"
        "bursts,times --produce-every-ms 120 --ask-every-ms 200 --faults kill,power,clean,"
        "kill-midway,power-midway,pause,isolate,cut,cut-one-way,lag,hold-fetch-response,"
        "hold-metadata,hold-produce-response,skew,disk-error,disk-full,controller-kill,"
        "controller-power,controller-pause,controller-deaf,elect,move-leader,reassign,"
        "reassign-cancel,min-isr,delete-records,churn-topic,hold-any --pairs 0.1 --chains 0.8 "
        "--drills --broker-setting heartbeat_interval_ms=133 --broker-setting "
        "replica_lag_time_max_ms=1000 --broker-setting replica_fetch_wait_max_ms=500 "
        "--broker-setting replica_fetch_backoff_ms=50 --broker-setting request_timeout_ms=1000 "
        "--broker-setting flush_mode=every-n-batches --broker-setting flush_messages=2 "
        "--broker-setting flush_ms=200 --broker-setting max_incremental_fetch_session_cache_slots=0 "
        "--broker-setting min_incremental_fetch_session_eviction_ms=500 --controller-setting "
        "session_timeout_ms=800 --controller-setting placement=striped --codec"
    ),
    "a topic is made again under its name, and its leader does not know yet": (
        "--seed 110606 --seconds 15 --controllers 3 --partitions 2 --producers 1 --idempotent --load "
        "times --weak 1 --produce-every-ms 500 --ask-every-ms 200 --combined --faults clean,"
        "kill-midway,power-midway,pause,isolate,cut,cut-one-way,cut-controller,lag,"
        "hold-alter-request,hold-alter-response,hold-fetch-response,hold-metadata,"
        "hold-produce-response,hold-heartbeat,disk-error,controller-kill,controller-power,"
        "controller-pause,controller-deaf,move-leader,reassign,reassign-cancel,delete-records,"
        "hold-any,controller-midway,flush-error --pairs 0.1 --chains 0.8 --drills --broker-setting "
        "heartbeat_interval_ms=133 --broker-setting replica_lag_time_max_ms=2000 --broker-setting "
        "replica_fetch_wait_max_ms=100 --broker-setting replica_fetch_backoff_ms=50 --broker-setting "
        "request_timeout_ms=1000 --broker-setting num_replica_fetchers=2 --controller-setting "
        "session_timeout_ms=800 --controller-setting leader_imbalance_check_interval_ms=2000 "
        "--controller-setting placement=striped"
    ),
    "a leader learns of its ISR later than the controllers": (
        "--seed 76662 --seconds 10 --profile kraft35 --idempotent --load bursts,pipeline "
        "--produce-every-ms 60 --ask-every-ms 60 --faults kill,power,clean,kill-midway,power-midway,"
        "pause,isolate,cut,cut-one-way,cut-controller,lag,hold-alter-request,hold-alter-response,"
        "hold-fetch-response,hold-fetch-request,hold-metadata,hold-produce-response,hold-heartbeat,"
        "skew,disk-error,disk-full,controller-kill,controller-power,controller-pause,"
        "controller-isolate,controller-deaf,elect,move-leader,reassign,reassign-cancel,min-isr,"
        "delete-records,churn-topic,hold-any,controller-midway,flush-error --fault-every-ms 400 "
        "--pairs 0.3 --chains 0.4 --drills --broker-setting heartbeat_interval_ms=250 "
        "--broker-setting replica_lag_time_max_ms=1000 --broker-setting "
        "replica_fetch_wait_max_ms=500 --broker-setting replica_fetch_backoff_ms=50 --broker-setting "
        "request_timeout_ms=1000 --broker-setting flush_mode=every-interval --broker-setting "
        "flush_messages=7 --broker-setting flush_ms=20 --controller-setting session_timeout_ms=1500"
    ),
    "a broker registers uncleanly in the commit that has the later level behind it": (
        "--seed 75698 --seconds 15 --brokers 5 --profile kraft35 --upgrade-to kip966 --partitions 2 "
        "--idempotent --load bursts,sessions --weak 1 --produce-every-ms 60 --ask-every-ms 60 "
        "--faults kill,power,clean,kill-midway,power-midway,pause,isolate,cut,cut-one-way,"
        "cut-controller,lag,hold-alter-request,hold-alter-response,hold-fetch-response,"
        "hold-fetch-request,hold-metadata,hold-produce-response,hold-heartbeat,skew,disk-error,"
        "disk-full,controller-kill,controller-power,controller-pause,controller-isolate,"
        "controller-deaf,elect,move-leader,reassign,reassign-cancel,min-isr,delete-records,"
        "churn-topic,hold-any,controller-midway,flush-error --fault-every-ms 2500 --pairs 0.1 "
        "--chains 0.8 --drills --broker-setting heartbeat_interval_ms=250 --broker-setting "
        "replica_lag_time_max_ms=2000 --broker-setting replica_fetch_wait_max_ms=100 "
        "--broker-setting replica_fetch_backoff_ms=200 --broker-setting request_timeout_ms=1000 "
        "--broker-setting flush_mode=every-n-batches --broker-setting flush_messages=2 "
        "--broker-setting flush_ms=200 --controller-setting session_timeout_ms=1500 "
        "--controller-setting unclean_recovery_strategy=balanced --keep-faults 0,1,2,3,4,14,8,9,15"
    ),
    "a follower joins that was in time by the clock of its leader": (
        "--seed 73953 --seconds 15 --brokers 5 --idempotent --load pipeline --produce-every-ms 60 "
        "--ask-every-ms 200 --faults kill,power,pause,isolate,cut-controller,lag,hold-alter-response,"
        "hold-produce-response,hold-heartbeat,skew,disk-error,disk-full,controller-kill,"
        "controller-pause,controller-isolate,move-leader,reassign,reassign-cancel,min-isr,"
        "delete-records,churn-topic --fault-every-ms 4500 --pairs 0.1 --chains 0.8 --drills "
        "--broker-setting heartbeat_interval_ms=250 --broker-setting replica_lag_time_max_ms=2000 "
        "--broker-setting replica_fetch_wait_max_ms=100 --broker-setting replica_fetch_backoff_ms=50 "
        "--broker-setting request_timeout_ms=1000 --broker-setting "
        "high_watermark_checkpoint_interval_ms=5000 --controller-setting session_timeout_ms=1500 "
        "--controller-setting unclean_recovery_strategy=balanced --controller-setting "
        "placement=striped --keep-faults 0,1,3,4,5,8,9,10,12,13,14,15,16,17,19"
    ),
    "MinISR is raised in the commit in which the sessions of the ISR end": (
        "--seed 73411 --seconds 15 --brokers 5 --profile kraft35 --upgrade-to kip966 --partitions 2 "
        "--producers 1 --load bursts,wrap,retention --weak 1 --produce-every-ms 60 --ask-every-ms 60 "
        "--faults kill,power,clean,kill-midway,power-midway,pause,isolate,cut,cut-one-way,"
        "cut-controller,lag,hold-alter-request,hold-alter-response,hold-fetch-response,"
        "hold-fetch-request,hold-metadata,hold-produce-response,hold-heartbeat,skew,disk-error,"
        "disk-full,controller-kill,controller-power,controller-pause,controller-isolate,"
        "controller-deaf,elect,move-leader,reassign,reassign-cancel,min-isr,delete-records,"
        "churn-topic,hold-any,controller-midway,flush-error --pairs 0.1 --chains 0.8 --drills "
        "--broker-setting heartbeat_interval_ms=250 --broker-setting replica_lag_time_max_ms=1000 "
        "--broker-setting replica_fetch_wait_max_ms=100 --broker-setting "
        "replica_fetch_backoff_ms=200 --broker-setting request_timeout_ms=1000 --broker-setting "
        "flush_mode=every-interval --broker-setting flush_messages=2 --broker-setting flush_ms=1000 "
        "--controller-setting session_timeout_ms=1500 --controller-setting placement=striped "
        "--keep-faults 0,2,8,14,26,27 --keep-clients 3"
    ),
    "a registration of a former life comes after the faults, and the present life ends by it": (
        "--seed 71796 --seconds 6 --profile kraft35 --upgrade-to kip966 --idempotent --load batches,"
        "pipeline,sessions,retention --weak 1 --produce-every-ms 500 --ask-every-ms 60 --faults kill,"
        "kill-midway,power-midway,pause,isolate,cut,cut-one-way,cut-controller,lag,"
        "hold-alter-request,hold-alter-response,hold-fetch-request,hold-metadata,"
        "hold-produce-response,hold-heartbeat,disk-full,controller-kill,controller-power,"
        "controller-pause,controller-isolate,move-leader,reassign,reassign-cancel,min-isr,"
        "delete-records,churn-topic,hold-any,controller-midway,flush-error --fault-every-ms 400 "
        "--pairs 0.3 --chains 0.4 --drills --broker-setting heartbeat_interval_ms=250 "
        "--broker-setting replica_lag_time_max_ms=6000 --broker-setting "
        "replica_fetch_wait_max_ms=100 --broker-setting replica_fetch_backoff_ms=200 "
        "--broker-setting request_timeout_ms=1000 --broker-setting flush_mode=every-write "
        "--broker-setting flush_messages=1 --broker-setting flush_ms=1000 --broker-setting "
        "replica_fetch_max_bytes=5000 --broker-setting replica_fetch_response_max_bytes=10000 "
        "--broker-setting fetch_max_bytes=5000 --controller-setting session_timeout_ms=1500 "
        "--keep-faults 3,5,9,21 --keep-clients 1,3,4"
    ),
    "so many messages are lost that a final read from the start would never end": (
        "--seed 70281 --seconds 11.2 --brokers 5 --profile zk08 --producers 1 --weak 1 "
        "--produce-every-ms 120 --ask-every-ms 60 --faults kill,power,clean,kill-midway,power-midway,"
        "pause,isolate,cut,cut-one-way,lag,hold-alter-request,hold-alter-response,"
        "hold-fetch-response,hold-metadata,disk-error,controller-kill,controller-pause,"
        "controller-isolate,controller-deaf,elect,move-leader,reassign,reassign-cancel,min-isr,"
        "delete-records,churn-topic,hold-any,flush-error --fault-every-ms 2500 --pairs 0.1 --chains "
        "0.8 --drills --broker-setting heartbeat_interval_ms=250 --broker-setting "
        "replica_lag_time_max_ms=500 --broker-setting replica_fetch_wait_max_ms=300 --broker-setting "
        "replica_fetch_backoff_ms=50 --broker-setting request_timeout_ms=3000 --broker-setting "
        "fetch_max_bytes=150 --broker-setting high_watermark_checkpoint_interval_ms=5000 "
        "--controller-setting session_timeout_ms=1500 --no-tcp --keep-faults none"
    ),
    "retention has moved the log start past the leader's of long ago, which comes only now": (
        "--seed 71159 --seconds 6 --profile zk08 --upgrade-to kip101 --producers 1 --load pipeline,"
        "retention --produce-every-ms 120 --ask-every-ms 200 --faults kill,power,clean,kill-midway,"
        "power-midway,pause,isolate,cut,cut-one-way,cut-controller,lag,hold-alter-request,"
        "hold-alter-response,hold-fetch-response,hold-fetch-request,hold-metadata,"
        "hold-produce-response,hold-heartbeat,skew,disk-error,disk-full,controller-kill,"
        "controller-power,controller-pause,controller-isolate,controller-deaf,elect,move-leader,"
        "reassign,reassign-cancel,min-isr,delete-records,churn-topic,hold-any,controller-midway,"
        "flush-error --fault-every-ms 800 --pairs 0.3 --chains 0.4 --drills --broker-setting "
        "heartbeat_interval_ms=250 --broker-setting replica_lag_time_max_ms=500 --broker-setting "
        "replica_fetch_wait_max_ms=300 --broker-setting replica_fetch_backoff_ms=200 "
        "--broker-setting request_timeout_ms=3000 --broker-setting flush_mode=on-roll "
        "--broker-setting flush_messages=2 --broker-setting flush_ms=200 --controller-setting "
        "session_timeout_ms=1500 --codec --keep-faults none --keep-clients 1,3"
    ),
    "a member of the ISR cuts what its former life had, while the leader acknowledges it (profile zk08)": (
        "--seed 20250 --seconds 6 --profile zk08 --upgrade-to kip101 --weak 1 --produce-every-ms "
        "120 --ask-every-ms 200 --faults "
        "kill,power,clean,kill-midway,power-midway,pause,isolate,cut,cut-one-way,cut-controller,"
        "lag,hold-alter-request,hold-alter-response,hold-fetch-response,hold-fetch-request,"
        "hold-metadata,hold-produce-response,hold-heartbeat,skew,disk-error,disk-full,"
        "controller-kill,controller-power,controller-pause,controller-isolate,controller-deaf,"
        "elect,move-leader,reassign,reassign-cancel,min-isr,delete-records,churn-topic,hold-any,"
        "controller-midway,flush-error "
        "--pairs 0.1 --chains 0.8 --drills --broker-setting heartbeat_interval_ms=250 "
        "--broker-setting replica_lag_time_max_ms=500 --broker-setting "
        "replica_fetch_wait_max_ms=500 --broker-setting replica_fetch_backoff_ms=50 "
        "--broker-setting request_timeout_ms=3000 --broker-setting flush_mode=every-n-batches "
        "--broker-setting flush_messages=2 --broker-setting flush_ms=200 --broker-setting "
        "max_incremental_fetch_session_cache_slots=1 --broker-setting "
        "min_incremental_fetch_session_eviction_ms=0 --controller-setting session_timeout_ms=1500"
    ),
    "an operator's request is carried out only after the drill has begun": (
        "--seed 20543 --seconds 6 --brokers 4 --partitions 2 --producers 1 --idempotent --load "
        "batches,sessions --produce-every-ms 120 --ask-every-ms 60 --faults "
        "kill,power,clean,kill-midway,isolate,cut,cut-one-way,cut-controller,lag,"
        "hold-alter-request,hold-fetch-response,hold-fetch-request,hold-produce-response,"
        "hold-heartbeat,disk-error,controller-power,controller-pause,controller-isolate,"
        "controller-deaf,elect,move-leader,reassign,reassign-cancel,min-isr,churn-topic,hold-any "
        "--fault-every-ms 800 --pairs 0.3 --chains 0.4 --drills --broker-setting "
        "heartbeat_interval_ms=250 --broker-setting replica_lag_time_max_ms=2000 --broker-setting "
        "replica_fetch_wait_max_ms=100 --broker-setting replica_fetch_backoff_ms=50 "
        "--broker-setting request_timeout_ms=3000 --broker-setting flush_mode=every-write "
        "--broker-setting flush_messages=7 --broker-setting flush_ms=200 --broker-setting "
        "num_replica_fetchers=2 --broker-setting high_watermark_checkpoint_interval_ms=5000 "
        "--controller-setting session_timeout_ms=1500"
    ),
    "one commit has the last change of an ISR, the level with ELR, and the end of that ISR": (
        "--seed 64 --seconds 6 --controllers 3 --profile kraft35 --upgrade-to kip966 --weak 1 "
        f"--produce-every-ms 120 --ask-every-ms 200 --fault-every-ms 400 {FAST} "
        "--broker-setting replica_lag_time_max_ms=1000 --broker-setting replica_fetch_wait_max_ms=500 "
        "--broker-setting replica_fetch_backoff_ms=200 --broker-setting request_timeout_ms=3000 --no-tcp"
    ),
    "a controller takes over while a leader waits for a member of its ISR that lacks the last record": (
        "--seed 195 --seconds 15 --brokers 4 --profile zk08 --upgrade-to kip101 --producers 1 --weak 1 "
        "--produce-every-ms 500 --ask-every-ms 200 --faults "
        "kill,clean,power-midway,pause,cut,cut-controller,lag,hold-alter-request,hold-alter-response,"
        "hold-fetch-response,hold-fetch-request,hold-metadata,hold-produce-response,hold-heartbeat,disk-error,"
        "disk-full,controller-power,controller-pause,controller-isolate,move-leader,reassign,min-isr "
        "--pairs 0.1 --chains 0.8 --broker-setting heartbeat_interval_ms=250 "
        "--broker-setting replica_lag_time_max_ms=500 --broker-setting replica_fetch_wait_max_ms=100 "
        "--broker-setting replica_fetch_backoff_ms=50 --broker-setting request_timeout_ms=3000 "
        "--controller-setting session_timeout_ms=1500"
    ),
    "records are deleted up to the middle of a batch, and a replica joins that has none": (
        "--seed 3076 --seconds 6 --brokers 4 --idempotent --load sessions,wrap --produce-every-ms 120 "
        "--ask-every-ms 60 --faults kill,power,clean,kill-midway,power-midway,pause,isolate,cut,cut-one-way,"
        "cut-controller,lag,hold-alter-request,hold-alter-response,hold-fetch-response,hold-fetch-request,"
        "hold-metadata,hold-produce-response,hold-heartbeat,skew,disk-error,disk-full,controller-kill,"
        "controller-power,controller-pause,controller-isolate,controller-deaf,elect,move-leader,reassign,"
        "reassign-cancel,min-isr,delete-records,churn-topic,hold-any,controller-midway,flush-error "
        f"--fault-every-ms 400 {FAST} --broker-setting replica_lag_time_max_ms=2000 "
        "--broker-setting replica_fetch_wait_max_ms=300 --broker-setting replica_fetch_backoff_ms=200 "
        "--broker-setting request_timeout_ms=3000 --broker-setting num_replica_fetchers=2 "
        "--broker-setting high_watermark_checkpoint_interval_ms=300 "
        "--controller-setting leader_imbalance_check_interval_ms=400"
    ),
    "one commit carries the election from outside the ISR and the fencing of the elected": (
        "--seed 373 --seconds 6 --brokers 4 --controllers 3 --partitions 2 --weak 1 --produce-every-ms 500 "
        "--ask-every-ms 200 --faults "
        "kill,power,kill-midway,power-midway,pause,cut-one-way,cut-controller,lag,"
        "hold-alter-response,hold-fetch-response,hold-fetch-request,hold-metadata,hold-produce-response,"
        "hold-heartbeat,disk-error,disk-full,controller-power,controller-isolate,elect,move-"
        "leader,reassign-cancel "
        f"--fault-every-ms 400 {FAST} --broker-setting replica_lag_time_max_ms=2000 "
        "--broker-setting replica_fetch_wait_max_ms=300 --broker-setting replica_fetch_backoff_ms=50 "
        "--broker-setting request_timeout_ms=1000 --no-tcp"
    ),
    "a registration is committed when the life that asked for it is over, and the next one is unclean": (
        "--seed 4058 --seconds 6 --controllers 3 --partitions 2 --producers 1 --idempotent "
        "--produce-every-ms 120 --ask-every-ms 200 --faults "
        "kill,power,clean,kill-midway,power-midway,pause,isolate,cut,cut-one-way,lag,"
        "hold-alter-response,hold-fetch-response,skew,disk-error,controller-kill,controller-"
        "power,controller-isolate,controller-deaf,move-leader,reassign,min-isr "
        "--fault-every-ms 800 --pairs 0.3 --chains 0.4 --broker-setting heartbeat_interval_ms=250 "
        "--broker-setting replica_lag_time_max_ms=2000 --broker-setting replica_fetch_wait_max_ms=100 "
        "--broker-setting replica_fetch_backoff_ms=200 --broker-setting request_timeout_ms=3000 "
        "--controller-setting session_timeout_ms=1500 --no-tcp"
    ),
    "the disk refuses the first write of a leader": (
        "--seed 4589 --seconds 6 --controllers 3 --produce-every-ms 60 --ask-every-ms 200 --faults "
        "power,clean,kill-midway,power-midway,pause,isolate,cut-controller,lag,hold-alter-"
        "request,hold-fetch-request,hold-produce-response,hold-heartbeat,skew,disk-full,"
        "controller-kill,controller-power,controller-isolate,elect,reassign,reassign-cancel,"
        "min-isr "
        "--pairs 0.1 --chains 0.8 --broker-setting heartbeat_interval_ms=250 --broker-setting "
        "replica_lag_time_max_ms=1000 --broker-setting replica_fetch_wait_max_ms=100 --broker-setting "
        "replica_fetch_backoff_ms=50 --broker-setting request_timeout_ms=1000 --controller-setting "
        "session_timeout_ms=1500"
    ),
    "others led between two epochs of a leader that was told of both at once": (
        "--seed 3201 --seconds 2.8 --controllers 3 --producers 1 --weak 1 --produce-every-ms 500 "
        "--ask-every-ms 200 "
        "--fault-every-ms 400 --pairs 0.3 --chains 0.4 --broker-setting heartbeat_interval_ms=250 "
        "--controller-setting session_timeout_ms=1500 --broker-setting replica_lag_time_max_ms=1000 "
        "--broker-setting replica_fetch_wait_max_ms=100 --broker-setting replica_fetch_backoff_ms=50 "
        "--broker-setting request_timeout_ms=1000 --keep-faults 0,1,2,3,4,5,6,7,8,9"
    ),
    "a broker is fenced between the moment when all were unfenced and the creation of the topic": (
        "--seed 64 --seconds 6 --controllers 3 --weak 1 --produce-every-ms 120 --ask-every-ms 200 "
        f"--fault-every-ms 400 {FAST} --broker-setting replica_lag_time_max_ms=1000 "
        "--broker-setting replica_fetch_wait_max_ms=500 --broker-setting replica_fetch_backoff_ms=200 "
        "--broker-setting request_timeout_ms=3000 --no-tcp"
    ),
    "what the leader told counts as known in the session, and the follower was away when it was told": (
        "--seed 55058 --seconds 5.4 --profile kraft35 --partitions 2 --weak 1 --produce-every-ms 500 "
        "--ask-every-ms 60 --faults "
        "kill-midway,power-midway,pause,isolate,cut,cut-one-way,cut-controller,lag,"
        "hold-alter-request,hold-alter-response,hold-fetch-response,hold-fetch-request,hold-metadata,"
        "hold-produce-response,hold-heartbeat,skew,controller-kill,controller-power,controller-pause,"
        "controller-isolate,controller-deaf,elect,move-leader,reassign,min-isr --pairs 0.1 --chains 0.8 "
        "--broker-setting heartbeat_interval_ms=250 --broker-setting replica_lag_time_max_ms=6000 "
        "--broker-setting replica_fetch_wait_max_ms=300 --broker-setting replica_fetch_backoff_ms=50 "
        "--broker-setting request_timeout_ms=1000 --controller-setting session_timeout_ms=1500 --keep-faults "
        "0,2,3,4"
    ),
}


@pytest.mark.parametrize("arguments", OLD.values(), ids=OLD)
def test_a_seed_that_once_failed_violates_nothing(arguments: str) -> None:
    ended = CliRunner().invoke(simulate, arguments.split())
    nothing_acknowledged = ended.exit_code == 3 and "no record was acknowledged" in ended.output
    assert nothing_acknowledged or (ended.exit_code, "clean" in ended.output) == (0, True), ended.output[
        -2000:
    ]
