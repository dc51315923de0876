//! A tenant to another pool: all its lanes are leased like a relay's, so that nobody holds a claim
//! for the old pool; then the pool is changed and the lanes are given back.

use std::time::Duration;

use deadpool_postgres::Transaction;
use event::{LANES, PoolName, TenantId};
use tokio_postgres::types::ToSql;

use crate::error::OutboxError;
use crate::key::LeaseToken;
use crate::statement;

/// Leases those lanes of a tenant that are free and renews those it has under the token. Answers
/// whether it has all of them; a relay gives one back with its next settle.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn lease_tenant(
    transaction: &Transaction<'_>,
    tenant_id: &TenantId,
    (token, leased_by): (LeaseToken, &str),
    lease: Duration,
) -> Result<bool, OutboxError> {
    let values: [&(dyn ToSql + Sync); 4] = [
        &tenant_id.as_str(),
        &token.uuid(),
        &leased_by,
        &lease.as_secs_f64(),
    ];
    let text = include_str!("sql/lease_tenant.sql");
    let leased = statement::changed(transaction, text, &values).await?;
    Ok(u64::try_from(LANES) == Ok(leased))
}

/// Changes the pool of a tenant whose lanes are all leased under the token, and gives them back.
/// Answers whether it did: not if a lease was lost meanwhile.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn move_tenant(
    transaction: &Transaction<'_>,
    tenant_id: &TenantId,
    token: LeaseToken,
    pool: &PoolName,
) -> Result<bool, OutboxError> {
    let lanes: Vec<i16> = (0..LANES).collect();
    let tenants = vec![tenant_id.as_str(); lanes.len()];
    let values: [&(dyn ToSql + Sync); 3] = [&tenants, &lanes, &token.uuid()];
    let text = include_str!("sql/lock_lanes.sql");
    let held = statement::rows(transaction, text, &values).await?;
    if held.len() != lanes.len() {
        return Ok(false);
    }
    let values: [&(dyn ToSql + Sync); 2] = [&tenant_id.as_str(), &pool.as_str()];
    statement::changed(transaction, include_str!("sql/move_tenant.sql"), &values).await?;
    give_back_tenant(transaction, tenant_id, token).await?;
    Ok(true)
}

/// Gives back whatever lanes of a tenant are leased under the token.
///
/// # Errors
/// [`OutboxError`] of the database.
pub async fn give_back_tenant(
    transaction: &Transaction<'_>,
    tenant_id: &TenantId,
    token: LeaseToken,
) -> Result<(), OutboxError> {
    let values: [&(dyn ToSql + Sync); 2] = [&tenant_id.as_str(), &token.uuid()];
    let text = include_str!("sql/give_back_tenant.sql");
    statement::changed(transaction, text, &values).await?;
    Ok(())
}
