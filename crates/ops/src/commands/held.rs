//! `held`: aggregates that wait for their head.

use event::TenantId;

use crate::cli::TenantFilter;
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

pub(crate) async fn run(
    context: &Context,
    filter: &TenantFilter,
    limit: u32,
) -> Result<Report, Failure> {
    let tenant = filter.tenant.as_ref().map(TenantId::as_str);
    let listing = context
        .list(
            include_str!("../sql/held.sql"),
            &[&tenant, &i64::from(limit)],
        )
        .await?;
    Ok(Report::listing(listing, "nothing is held"))
}
