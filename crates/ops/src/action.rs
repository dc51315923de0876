//! `operator_actions`: who changed what, when, why.

use deadpool_postgres::Transaction;
use event::TenantId;
use serde_json::Value;

use crate::context::Context;
use crate::failure::Failure;

/// A change, as it is noted.
#[derive(Debug)]
pub(crate) struct Action<'a> {
    /// The command, e.g. `tenant pause`.
    pub(crate) name: &'a str,
    /// The tenant concerned, if it is one.
    pub(crate) tenant: Option<&'a TenantId>,
    /// What was named.
    pub(crate) target: Value,
    /// Why.
    pub(crate) because: &'a str,
    /// What became of it.
    pub(crate) result: Value,
}

impl Context {
    /// Notes a change, in the transaction that makes it.
    pub(crate) async fn note(
        &self,
        transaction: &Transaction<'_>,
        action: Action<'_>,
    ) -> Result<(), Failure> {
        let Action {
            name,
            tenant,
            target,
            because,
            result,
        } = action;
        let tenant = tenant.map(TenantId::as_str);
        transaction
            .execute(
                include_str!("sql/note_action.sql"),
                &[&self.actor, &name, &tenant, &target, &because, &result],
            )
            .await?;
        Ok(())
    }
}
