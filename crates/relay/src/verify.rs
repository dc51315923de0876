//! Whether every queue that a pool needs is there.

use std::future::Future;

use event::PoolName;

/// Looks whether the queues of a pool are there.
pub trait Verify: Send + Sync + 'static {
    /// Whether every one of them is, now.
    fn is_verified(&self, pool: &PoolName) -> impl Future<Output = bool> + Send;
}
