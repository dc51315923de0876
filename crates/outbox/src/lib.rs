//! The outbox tables: claim, settle, lanes, holds, backlog, wake-up; one statement per file.
//!
//! # The protocol
//!
//! A relay [`claim`]s: it walks the lanes that have work, leases free ones under a fresh
//! [`LeaseToken`] and reads their rows, breadth first. It publishes what it read, and settles: each
//! event is published, released, retried later, or parked. Settling is fenced by the token.
//!
//! **One rule.** Whoever changes lanes, holds or held rows locks the lane's row first and reads in a
//! *later* statement. In one statement the snapshot would be older than the lock, and rows that the
//! last owner has just settled would still read as pending.
//!
//! **Held.** A head that waits or is parked is held and writes a hold for its aggregate; the claim
//! marks what it meets behind a hold as held too, so that it leaves the claim index. When the head is
//! done, the hold is *fed*: the next ones are let go. Delayed events (without a version) are born held,
//! without a hold, and are let go when they are due.
//!
//! **State decides, never a watermark.** A late commit with a lower position is simply still pending.
//! Ages and dues are judged by the database's clock alone.

mod backlog;
mod batch;
mod claim;
mod due;
mod error;
mod feed;
mod hand_over;
mod key;
mod lease;
pub mod mutant;
mod parked;
mod partitions;
mod pools;
mod record;
mod redrive;
mod repair;
mod row;
mod settle;
mod settlement;
mod skip;
mod statement;
mod wake;
mod walk;

pub use backlog::{Backlog, backlog, oldest_due};
pub use batch::{ClaimedBatch, Parts, Settling};
pub use claim::{ClaimRequest, Claimed, claim, claim_one};
pub use due::let_go_due;
pub use error::OutboxError;
pub use feed::{DoneHead, feed};
pub use hand_over::{give_back_tenant, lease_tenant, move_tenant};
pub use key::{EventKey, LaneKey, LeaseToken};
pub use lease::{HeldLane, Renewal, write_try};
pub use parked::{ParkedEvent, ParkedFilter, parked};
pub use partitions::{PartitionStep, do_partition_step, partition_steps};
pub use pools::{Generations, PoolQueues, pools};
pub use record::{RecordError, record, record_all};
pub use redrive::redrive;
pub use repair::repair_holds;
pub use row::{ClaimedEvent, Undecodable, event_of};
pub use settle::{Settled, settle};
pub use settlement::Settlement;
pub use skip::{Skipped, skip};
pub use wake::{listen, notify, notify_oneself};
pub use walk::Resume;
