//! The deliveries of a batch sorted for its transactions: key order, each identity once.

use std::collections::HashMap;

use crate::delivery::{Delivery, Readable};

/// A batch of deliveries, by what is to be done with them. Places are those in the batch.
///
/// A copy of a delivery that is in the batch already is in none of the lists: it is a duplicate.
pub(crate) struct Sorted<'a> {
    /// Not events; in the order of their digests.
    pub(crate) unreadable: Vec<usize>,
    /// Sets of different identities in key order; a second content of one comes in a later set.
    pub(crate) rounds: Vec<Vec<(usize, Readable<'a>)>>,
}

impl<'a> Sorted<'a> {
    pub(crate) fn of(deliveries: &'a [Delivery]) -> Self {
        let mut unreadable = Vec::new();
        let mut rounds: Vec<Vec<(usize, Readable<'a>)>> = Vec::new();
        let mut contents: HashMap<_, Vec<_>> = HashMap::with_capacity(deliveries.len());
        for (place, delivery) in deliveries.iter().enumerate() {
            let Some(one) = Readable::of(delivery) else {
                unreadable.push(place);
                continue;
            };
            let seen = contents.entry(one.key()).or_default();
            if seen.contains(&one.digest) {
                continue;
            }
            seen.push(one.digest);
            if rounds.len() < seen.len() {
                rounds.push(Vec::with_capacity(deliveries.len()));
            }
            rounds[seen.len() - 1].push((place, one));
        }
        unreadable.sort_by_key(|place| *deliveries[*place].digest());
        for round in &mut rounds {
            round.sort_by(|(_, one), (_, other)| one.key().cmp(&other.key()));
        }
        Self { unreadable, rounds }
    }
}
