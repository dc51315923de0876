//! How often a tenant may ask, and how many of its requests may be under way.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use event::TenantId;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::keys::Caller;
use crate::metrics;

/// The rates of all tenants that were seen: only valid keys get here, so there are as many as
/// tenants.
#[derive(Debug)]
pub(crate) struct Rates {
    default: (u32, u32),
    clock: DefaultClock,
    tenants: Mutex<HashMap<TenantId, Tenant>>,
}

#[derive(Debug)]
struct Tenant {
    rate_and_burst: (u32, u32),
    limiter: Arc<DefaultDirectRateLimiter>,
}

impl Rates {
    pub(crate) fn new(rate_per_second: u32, burst: u32) -> Self {
        Self {
            default: (rate_per_second, burst),
            clock: DefaultClock::default(),
            tenants: Mutex::default(),
        }
    }

    /// Takes one request from the tenant's rate.
    ///
    /// # Errors
    /// How long to wait until there is one to take.
    pub(crate) fn take(&self, caller: &Caller) -> Result<(), Duration> {
        let limiter = self.limiter(caller);
        let taken = limiter.check();
        taken.map_err(|early| early.wait_time_from(self.clock.now()))
    }

    /// A changed rate starts with a full burst.
    fn limiter(&self, caller: &Caller) -> Arc<DefaultDirectRateLimiter> {
        let (rate, burst) = self.default;
        let rate_and_burst = (caller.rate.unwrap_or(rate), caller.burst.unwrap_or(burst));
        let mut tenants = lock(&self.tenants);
        let fresh = || Tenant {
            rate_and_burst,
            limiter: Arc::new(RateLimiter::direct(quota(rate_and_burst))),
        };
        let tenant = tenants.entry(caller.tenant.clone()).or_insert_with(fresh);
        if tenant.rate_and_burst != rate_and_burst {
            *tenant = fresh();
        }
        Arc::clone(&tenant.limiter)
    }
}

fn quota((rate, burst): (u32, u32)) -> Quota {
    let positive = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    Quota::per_second(positive(rate)).allow_burst(positive(burst))
}

/// The requests under way: so many of all, and so many of one tenant.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    most: usize,
    most_per_tenant: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    tenants: HashMap<TenantId, usize>,
}

/// A request under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    tenant: TenantId,
    taken: Arc<Mutex<Taken>>,
}

impl Slots {
    pub(crate) fn new(most: usize, most_per_tenant: usize) -> Self {
        Self {
            most,
            most_per_tenant,
            taken: Arc::default(),
        }
    }

    /// A slot, if there is one left for this tenant.
    pub(crate) fn take(&self, tenant: &TenantId) -> Option<Slot> {
        let mut taken = lock(&self.taken);
        let own = taken.tenants.get(tenant).copied().unwrap_or(0);
        if taken.all >= self.most || own >= self.most_per_tenant {
            return None;
        }
        taken.all += 1;
        taken.tenants.insert(tenant.clone(), own + 1);
        show(taken.all);
        Some(Slot {
            tenant: tenant.clone(),
            taken: Arc::clone(&self.taken),
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all = taken.all.saturating_sub(1);
        show(taken.all);
        if let Some(own) = taken.tenants.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                taken.tenants.remove(&self.tenant);
            }
        }
    }
}

fn show(taken: usize) {
    let taken = u32::try_from(taken).unwrap_or(u32::MAX);
    ::metrics::gauge!(metrics::IN_FLIGHT).set(f64::from(taken));
}

/// Each change leaves the map whole, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(tenant: &str, rate: Option<u32>, burst: Option<u32>) -> Caller {
        Caller {
            tenant: TenantId::parse(tenant).expect("a tenant"),
            key_hash: [0; 32],
            rate,
            burst,
        }
    }

    #[test]
    fn one_tenant_over_its_rate_leaves_the_others_theirs() {
        let rates = Rates::new(1, 2);
        let (noisy, quiet) = (caller("noisy", None, None), caller("quiet", None, None));
        assert_eq!(rates.take(&noisy), Ok(()));
        assert_eq!(rates.take(&noisy), Ok(()));
        let wait = rates.take(&noisy).expect_err("the burst is spent");
        assert!(
            wait > Duration::from_millis(500) && wait <= Duration::from_secs(1),
            "{wait:?}"
        );
        assert_eq!(rates.take(&quiet), Ok(()));
    }

    #[test]
    fn a_tenants_own_rate_replaces_the_default() {
        let rates = Rates::new(1, 1);
        let own = caller("a", Some(1000), Some(3));
        assert!((0..3).all(|_| rates.take(&own).is_ok()));
        let default = caller("a", None, None);
        assert_eq!(rates.take(&default), Ok(()), "a changed rate starts anew");
        assert!(rates.take(&default).is_err());
    }

    #[test]
    fn slots_are_bounded_in_all_and_per_tenant_and_come_back() {
        let slots = Slots::new(3, 2);
        let (a, b) = (
            caller("a", None, None).tenant,
            caller("b", None, None).tenant,
        );
        let first = slots.take(&a);
        let _second = slots.take(&a);
        assert!(first.is_some() && slots.take(&a).is_none());
        let _third = slots.take(&b);
        assert!(slots.take(&b).is_none(), "all are taken");
        drop(first);
        assert!(slots.take(&b).is_some());
    }
}
