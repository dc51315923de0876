//! `tenant key`: keys of the HTTP API. A key is printed once, when it is made; kept is its hash.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use deadpool_postgres::Transaction;
use event::TenantId;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::tenant::unknown;
use crate::action::Action;
use crate::cli::Key;
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

/// Two for rotation: the new one is handed out while the old one is still in use.
const LIVE_KEYS: i64 = 2;
const PREFIX: &str = "tfk_";

pub(crate) async fn run(context: &Context, key: &Key) -> Result<Report, Failure> {
    let tenant = &key.tenant;
    if key.list {
        return list(context, tenant).await;
    }
    let ended = key.revoke.as_ref().map(|named| (named, "revoke"));
    let ended = ended.or(key.expire.as_ref().map(|named| (named, "expire")));
    match ended {
        Some((named, how)) => end(context, key, (named, how)).await,
        None => issue(context, key).await,
    }
}

async fn list(context: &Context, tenant: &TenantId) -> Result<Report, Failure> {
    let card = include_str!("../sql/tenant_show.sql");
    if context.list(card, &[&tenant.as_str()]).await?.is_empty() {
        return Err(unknown(tenant));
    }
    let keys = include_str!("../sql/keys.sql");
    let listing = context.list(keys, &[&tenant.as_str()]).await?;
    Ok(Report::listing(listing, "no keys"))
}

async fn issue(context: &Context, wanted: &Key) -> Result<Report, Failure> {
    let tenant = &wanted.tenant;
    let secret = new_key();
    let hash = hash(&secret);
    let id = &hex::encode(&hash)[..12];
    let seconds = wanted.after.map(|after| after.as_secs_f64());
    let work = context.database.transaction(context.deadline, async |transaction| {
        let live = lock_and_count(transaction, tenant).await?;
        if live >= LIVE_KEYS {
            return Err(Failure::Refused(format!(
                "tenant {tenant} has {live} live keys, enough for a rotation: revoke or expire one first"
            )));
        }
        let text = include_str!("../sql/key_add.sql");
        transaction
            .execute(text, &[&tenant.as_str(), &hash, &wanted.label, &seconds])
            .await?;
        let action = Action {
            name: "tenant key",
            tenant: Some(tenant),
            target: json!({ "key_id": id, "label": wanted.label, "seconds": seconds }),
            because: &wanted.because.because,
            result: json!({ "live_keys": live + 1 }),
        };
        context.note(transaction, action).await
    });
    work.await?;
    let json = json!({ "tenant": tenant.as_str(), "key_id": id, "key": secret });
    // Nothing but the key, so that a shell can take it as it is.
    Ok(Report::done(secret, json))
}

async fn lock_and_count(transaction: &Transaction<'_>, tenant: &TenantId) -> Result<i64, Failure> {
    let lock = include_str!("../sql/tenant_lock.sql");
    let locked = transaction.query_opt(lock, &[&tenant.as_str()]).await?;
    locked.ok_or_else(|| unknown(tenant))?;
    let text = include_str!("../sql/keys_live.sql");
    let row = transaction.query_one(text, &[&tenant.as_str()]).await?;
    Ok(row.try_get(0)?)
}

async fn end(context: &Context, key: &Key, (named, how): (&str, &str)) -> Result<Report, Failure> {
    let tenant = &key.tenant;
    let id = match named.starts_with(PREFIX) {
        true => hex::encode(hash(named)),
        false => named.to_ascii_lowercase(),
    };
    if id.len() < 8 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let told = "a key is named by its id (`tenant key TENANT --list`) or by itself";
        return Err(Failure::Refused(told.to_owned()));
    }
    let seconds = match how {
        "expire" => Some(key.after.unwrap_or_default().as_secs_f64()),
        _ => None,
    };
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let text = include_str!("../sql/key_end.sql");
            let rows = transaction
                .query(text, &[&tenant.as_str(), &id, &seconds])
                .await?;
            let [row] = rows.as_slice() else {
                return Err(Failure::NotFound(format!(
                    "tenant {tenant} has {} live keys whose id starts so",
                    rows.len()
                )));
            };
            let key_id: String = row.try_get("key_id")?;
            let action = Action {
                name: if how == "expire" {
                    "tenant key expire"
                } else {
                    "tenant key revoke"
                },
                tenant: Some(tenant),
                target: json!({ "key_id": key_id, "seconds": seconds }),
                because: &key.because.because,
                result: json!({}),
            };
            context.note(transaction, action).await?;
            let done = match seconds {
                Some(seconds) => format!("key {key_id} of tenant {tenant} expires in {seconds} s"),
                None => format!("key {key_id} of tenant {tenant} is revoked"),
            };
            let json = json!({ "tenant": tenant.as_str(), "key_id": key_id, "ended": how });
            Ok(Report::done(done, json))
        });
    work.await
}

/// 244 bits of the system's randomness.
fn new_key() -> String {
    let [one, two] = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
    let random = Sha256::new().chain_update(one).chain_update(two).finalize();
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random))
}

fn hash(key: &str) -> Vec<u8> {
    Sha256::digest(key.as_bytes()).to_vec()
}
