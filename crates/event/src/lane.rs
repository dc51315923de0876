//! The lane of an aggregate: one of 16 buckets of a tenant, the unit of ownership.

use sha2::{Digest as _, Sha256};

use crate::model::Aggregate;
use crate::names::TenantId;

/// How many lanes a tenant has.
pub const LANES: i16 = 16;

/// A bucket of a tenant's aggregates. 0 to 15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(i16);

impl Lane {
    /// The lane of an aggregate. `ticketflow.lane_of` computes the same in SQL.
    #[must_use]
    pub fn of(tenant: &TenantId, aggregate: &Aggregate) -> Self {
        let mut hash = Sha256::new();
        hash.update(tenant.as_str());
        hash.update(b"\n");
        hash.update(aggregate.aggregate_type.as_str());
        hash.update(b"\n");
        hash.update(aggregate.aggregate_id.as_str());
        Self(i16::from(hash.finalize()[0] & 15))
    }

    /// The lane's number, 0 to 15.
    #[must_use]
    pub fn number(self) -> i16 {
        self.0
    }
}
