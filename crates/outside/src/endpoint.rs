//! An endpoint: a provider, whose tasks go to it, and how much it can take.

use std::sync::Arc;

use crate::provider::Provider;

/// Whose tasks go to an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenants {
    /// Those of these tenants.
    Only(Vec<String>),
    /// Those of all others.
    AllBut(Vec<String>),
}

impl Tenants {
    /// Whether this tenant's tasks go there.
    #[must_use]
    pub fn include(&self, tenant_id: &str) -> bool {
        match self {
            Self::Only(tenants) => tenants.iter().any(|tenant| tenant == tenant_id),
            Self::AllBut(tenants) => !tenants.iter().any(|tenant| tenant == tenant_id),
        }
    }
}

/// An endpoint, with a loop of its own.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its name in metrics and logs.
    pub name: String,
    /// Whose tasks go to it.
    pub tenants: Tenants,
    /// What takes them.
    pub provider: Arc<dyn Provider>,
    /// How many requests may be under way at once.
    pub concurrency: usize,
    /// How many requests a second this process may make; 0 is no limit.
    pub rate_per_second: u32,
}
