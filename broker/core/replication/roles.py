"""A replica leads, follows or does neither, as committed metadata says (docs/protocol.md K48-K54)."""

from __future__ import annotations

from wrackline.broker.core.replication import leader
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER


def become_leader(replica: Replica, image: PartitionImage) -> None:
    """K48 to K50: from any role, in the same or in a new leader epoch."""
    ctx, switches, led = replica.ctx, replica.ctx.rules.switches, replica.leader is not None
    epochs = image.leader_epoch - replica.leader_epoch
    fresh = epochs != 0
    replica.adopt(image)
    if fresh and switches.assigns_epoch_on_election:
        replica.log.assign_epoch(replica.leader_epoch, ctx.out)
    if fresh and switches.new_leader_forgets_producers:
        replica.log.producers.clear()
    if not led:
        leader.begin(replica, image.isr)
    elif fresh:
        leader.reelected(replica, image.isr, epochs)
    else:
        leader.isr_committed(replica, image.isr)
    _trace_role(replica, "leader", fresh or not led)
    if replica.every_write:
        replica.log.flush(ctx.out)
    if fresh or not led:
        leader.advance(replica)
    leader.recovery_state(replica, image.leader_recovery_state)
    replica.touch()


def become_follower(replica: Replica, image: PartitionImage) -> bool:
    """K51 to K54. True when the fetcher must begin anew: another leader epoch, or none yet."""
    rules = replica.ctx.rules
    fresh = image.leader_epoch != replica.leader_epoch
    replica.leader = None
    replica.adopt(image)
    if fresh:
        replica.after_empty = replica.after_empty and rules.switches.empty_answer_outlives_epoch
        cut = rules.truncation.on_become_follower(replica.log.leo, replica.high_watermark)
        if cut < replica.log.leo:
            replica.truncate(cut, "became follower")
        if replica.every_write:
            replica.log.flush(replica.ctx.out)
    _trace_role(replica, "follower", fresh)
    replica.touch()
    return fresh


def step_down(replica: Replica) -> None:
    """Ends the service of a replica, which is removed, or whose broker closes its logs."""
    replica.leader = None
    replica.leader_id = NO_LEADER
    replica.touch()


def settings_changed(replica: Replica) -> None:
    """MinISR and the like come with the metadata; a lower MinISR may let the high watermark move."""
    replica.take_settings()
    if replica.every_write:
        replica.log.flush(replica.ctx.out)
    if replica.leader is not None:
        leader.advance(replica)
        replica.touch()


def flushed(replica: Replica, upto: int) -> None:
    """A flush is done: in mode every-write that may commit."""
    if replica.on_flushed(upto) and replica.leader is not None:
        leader.advance(replica)
    replica.flush_next()


def _trace_role(replica: Replica, role: str, changed: bool) -> None:
    if changed:
        replica.ctx.trace(
            "role",
            tp=str(replica.tp),
            role=role,
            leader=replica.leader_id,
            leader_epoch=replica.leader_epoch,
            partition_epoch=replica.partition_epoch,
            leso=-1 if replica.leader is None else replica.leader.leso,
            leo=replica.log.leo,
            hwm=replica.high_watermark,
        )
