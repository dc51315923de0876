//! `lanes`: who is publishing what.

use event::TenantId;

use crate::cli::TenantFilter;
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

pub(crate) async fn run(
    context: &Context,
    filter: &TenantFilter,
    all: bool,
) -> Result<Report, Failure> {
    let tenant = filter.tenant.as_ref().map(TenantId::as_str);
    let listing = context
        .list(include_str!("../sql/lanes.sql"), &[&tenant, &all])
        .await?;
    Ok(Report::listing(listing, "no lane is leased or has work"))
}
