//! The settings that the processes on a broker share: where it is and which pools are served.

use broker::ConnectOptions;
use event::PoolName;
use runtime::settings::{Problems, SecretUrl, Settings};

/// A check for a setting that names a pool.
///
/// # Errors
/// Why the value is not a pool's name.
pub fn is_pool(value: &str) -> Result<(), String> {
    let parsed = PoolName::parse(value);
    parsed.map(drop).map_err(|error| error.to_string())
}

/// The pools of the setting `pool`, sorted, each once; empty if it is not given.
///
/// # Errors
/// [`Problems`] with each value that is not a pool's name.
pub fn pools(settings: &Settings) -> Result<Vec<PoolName>, Problems> {
    let mut problems = Problems::default();
    let mut pools = Vec::new();
    for name in settings.list("pool") {
        let parsed = PoolName::parse(name).map_err(|error| error.to_string());
        problems.note(parsed.map(|name| pools.push(name)));
    }
    pools.sort();
    pools.dedup();
    match problems.is_empty() {
        true => Ok(pools),
        false => Err(problems),
    }
}

/// A check of all settings: the broker's URL is there and can be used.
pub fn broker_is_given(settings: &Settings, problems: &mut Problems) {
    SecretUrl::check(settings, "amqp_url", problems, |url| {
        broker::check_address(url).map_err(|error| error.to_string())
    });
}

/// How the broker is reached, under this name in its list of connections.
///
/// # Errors
/// [`Problems`] if there is no URL or its file cannot be read.
pub fn broker(settings: &Settings, name: &str) -> Result<ConnectOptions, Problems> {
    let source = SecretUrl::of(settings, "amqp_url");
    let source = source.ok_or_else(|| Problems::one("AMQP_URL is not set"))?;
    let mut options = ConnectOptions::new(source.read().map_err(Problems::one)?, name);
    if let SecretUrl::File(path) = source {
        options.url_file = Some(path);
    }
    Ok(options)
}
