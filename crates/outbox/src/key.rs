//! What names an event, a lane and a lease.

use uuid::Uuid;

/// What makes an event the same event, as its row has it: a row that breaks the rules of names has
/// a key too, so that it can be parked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    /// The event's id.
    pub event_id: Uuid,
    /// Its tenant.
    pub tenant_id: String,
    /// The system that recorded it.
    pub source: String,
}

/// A lane of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneKey {
    /// The tenant.
    pub tenant_id: String,
    /// Its number, 0 to 15.
    pub lane: i16,
}

/// What a claim leases its lanes under. Fresh for each claim, so that nobody settles for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseToken(Uuid);

impl LeaseToken {
    /// A token nobody has had.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::new_v4())
    }

    pub(crate) fn of(token: Uuid) -> Self {
        Self(token)
    }

    pub(crate) fn uuid(self) -> Uuid {
        self.0
    }
}

impl std::fmt::Display for LeaseToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Lanes as the two arrays that the statements take.
pub(crate) fn arrays<'a>(lanes: impl IntoIterator<Item = &'a LaneKey>) -> (Vec<&'a str>, Vec<i16>) {
    lanes
        .into_iter()
        .map(|key| (key.tenant_id.as_str(), key.lane))
        .unzip()
}
