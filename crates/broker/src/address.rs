//! Reading an AMQP URI: every form in use is either understood or refused in clear words.
//!
//! lapin's own parser turns an IPv6 literal into `localhost` and `amqp://host/` into the vhost of
//! the empty name, which does not exist; a password with a raw `#` or `/` cuts its URI short.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};

/// The heartbeat unless the URI names one, in seconds. The broker's own default of 60 s would
/// leave a half-open link unnoticed for two minutes.
const HEARTBEAT_SECONDS: u16 = 10;

/// Why a text is not the address of a broker. Never quotes it: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// Another scheme, or none.
    #[error("the address must begin with amqp:// or amqps://")]
    Scheme,
    /// The part after the host's colon is not a port.
    #[error(
        "the port is not a number from 1 to 65535 (write '/', '?' and '#' in a password as %2F, %3F, %23)"
    )]
    Port,
    /// A host that cannot be one.
    #[error("the host is not valid (an IPv6 address stands in square brackets)")]
    Host,
    /// A percent sign without two hexadecimal digits, or bytes that are not UTF-8.
    #[error("{0} is not valid percent-encoded UTF-8 (write '%' as %25)")]
    Encoding(&'static str),
    /// More than one segment, so it is unclear where the vhost ends.
    #[error("the vhost has a '/' in it: write it as %2F")]
    Vhost,
    /// A fragment, most likely from a password.
    #[error("the address has a '#' in it: write it as %23")]
    Fragment,
    /// A parameter this client does not have.
    #[error(
        "the parameter {0:?} is not known: heartbeat, frame_max, channel_max, connection_timeout, auth_mechanism, cacertfile are"
    )]
    Parameter(String),
    /// A parameter whose value is not what it should be.
    #[error("the parameter {0} has a value that is not valid")]
    Value(&'static str),
    /// The file with the password or the certificates cannot be used.
    #[error("{what} cannot be read: {why}")]
    File {
        /// Which file.
        what: String,
        /// The system's words.
        why: String,
    },
}

/// A broker's address, understood.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) uri: AMQPUri,
    /// The parameter `cacertfile`, if given.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidAddress> {
        let (scheme, rest) = split_scheme(text)?;
        if rest.contains('#') {
            return Err(InvalidAddress::Fragment);
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, Some(path)),
            None => (rest, None),
        };
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = host_and_port(place, scheme.default_port())?;
        let mut address = Self {
            uri: AMQPUri {
                scheme,
                authority: AMQPAuthority {
                    userinfo: credentials(user)?,
                    host,
                    port,
                },
                vhost: vhost(path)?,
                query: AMQPQueryString {
                    heartbeat: Some(HEARTBEAT_SECONDS),
                    ..AMQPQueryString::default()
                },
            },
            ca_file: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            address.set(pair)?;
        }
        Ok(address)
    }

    fn set(&mut self, pair: &str) -> Result<(), InvalidAddress> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value, "a parameter")?;
        let query = &mut self.uri.query;
        match name {
            "heartbeat" => query.heartbeat = Some(number("heartbeat", &value)?),
            "frame_max" => query.frame_max = Some(number("frame_max", &value)?),
            "channel_max" => query.channel_max = Some(number("channel_max", &value)?),
            "connection_timeout" => {
                query.connection_timeout = Some(number("connection_timeout", &value)?);
            }
            "auth_mechanism" => {
                let mechanism = value.parse();
                query.auth_mechanism =
                    Some(mechanism.map_err(|_| InvalidAddress::Value("auth_mechanism"))?);
            }
            "cacertfile" => self.ca_file = Some(PathBuf::from(value)),
            other => return Err(InvalidAddress::Parameter(other.chars().take(40).collect())),
        }
        Ok(())
    }
}

/// Whether a text is the address of a broker, for checks of settings.
///
/// # Errors
/// [`InvalidAddress`] says what is wrong without quoting it.
pub fn check_address(text: &SecretString) -> Result<(), InvalidAddress> {
    Address::parse(text.expose_secret()).map(drop)
}

fn split_scheme(text: &str) -> Result<(AMQPScheme, &str), InvalidAddress> {
    let (scheme, rest) = text
        .trim()
        .split_once("://")
        .ok_or(InvalidAddress::Scheme)?;
    match scheme.to_ascii_lowercase().as_str() {
        "amqp" => Ok((AMQPScheme::AMQP, rest)),
        "amqps" => Ok((AMQPScheme::AMQPS, rest)),
        _ => Err(InvalidAddress::Scheme),
    }
}

/// `guest` is meant only for an address without any user: RabbitMQ lets it in from loopback alone.
fn credentials(user: Option<&str>) -> Result<AMQPUserInfo, InvalidAddress> {
    let Some(user) = user else {
        return Ok(AMQPUserInfo::default());
    };
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    Ok(AMQPUserInfo {
        username: decoded(name, "the user")?,
        password: decoded(password, "the password")?,
    })
}

fn host_and_port(place: &str, default_port: u16) -> Result<(String, u16), InvalidAddress> {
    if let Some(literal) = place.strip_prefix('[') {
        let (literal, rest) = literal.split_once(']').ok_or(InvalidAddress::Host)?;
        let address: Ipv6Addr = literal.parse().map_err(|_| InvalidAddress::Host)?;
        return match rest.strip_prefix(':') {
            None if rest.is_empty() => Ok((address.to_string(), default_port)),
            None => Err(InvalidAddress::Host),
            Some(digits) => Ok((address.to_string(), port(digits)?)),
        };
    }
    let (host, port) = match place.split_once(':') {
        Some((host, digits)) => (host, port(digits)?),
        None => (place, default_port),
    };
    let host = decoded(host, "the host")?;
    let odd = |c: char| c.is_whitespace() || c.is_control() || "[]@,".contains(c);
    match host.as_str() {
        "" => Ok(("localhost".to_owned(), port)),
        _ if host.contains(odd) => Err(InvalidAddress::Host),
        _ => Ok((host, port)),
    }
}

fn port(digits: &str) -> Result<u16, InvalidAddress> {
    match digits.parse() {
        Ok(0) | Err(_) => Err(InvalidAddress::Port),
        Ok(port) => Ok(port),
    }
}

/// No path and `/` both mean the default vhost `/`: the vhost of the empty name that the URI
/// specification makes of the second does not exist anywhere.
fn vhost(path: Option<&str>) -> Result<String, InvalidAddress> {
    match path {
        None | Some("" | "/") => Ok("/".to_owned()),
        Some(path) if path.contains('/') => Err(InvalidAddress::Vhost),
        Some(path) => decoded(path, "the vhost"),
    }
}

fn number<N: std::str::FromStr>(name: &'static str, value: &str) -> Result<N, InvalidAddress> {
    value.parse().map_err(|_| InvalidAddress::Value(name))
}

fn decoded(text: &str, what: &'static str) -> Result<String, InvalidAddress> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'%' {
            let (digits, tail) = rest
                .split_at_checked(2)
                .ok_or(InvalidAddress::Encoding(what))?;
            let digits = std::str::from_utf8(digits).unwrap_or("");
            let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let byte = u8::from_str_radix(digits, 16).ok().filter(|_| plain);
            bytes.push(byte.ok_or(InvalidAddress::Encoding(what))?);
            rest = tail;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).map_err(|_| InvalidAddress::Encoding(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> AMQPUri {
        Address::parse(text)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .uri
    }

    #[test]
    fn every_form_of_the_default_vhost_is_the_default_vhost() {
        let forms = [
            "amqp://h",
            "amqp://h/",
            "amqp://h/%2f",
            "amqp://h/%2F",
            "amqp://h//",
            "amqp://h?heartbeat=5",
        ];
        for form in forms {
            assert_eq!(parsed(form).vhost, "/", "{form}");
        }
        assert_eq!(parsed("amqp://h/a%2Fb").vhost, "a/b");
        assert_eq!(parsed("amqp://h/prod").vhost, "prod");
    }

    #[test]
    fn hosts_and_ports_are_read_as_written() {
        let cases = [
            ("amqp://", ("localhost", 5672)),
            ("amqps://h", ("h", 5671)),
            ("AMQP://h:1", ("h", 1)),
            ("amqp://[::1]", ("::1", 5672)),
            ("amqp://u:p@[2001:db8::7]:5673/v", ("2001:db8::7", 5673)),
            ("amqp://127.0.0.1:65535", ("127.0.0.1", 65535)),
        ];
        for (text, (host, port)) in cases {
            let authority = parsed(text).authority;
            assert_eq!(
                (authority.host.as_str(), authority.port),
                (host, port),
                "{text}"
            );
        }
    }

    #[test]
    fn guest_is_only_for_an_address_without_a_user() {
        let user = |text| {
            let info = parsed(text).authority.userinfo;
            (info.username, info.password)
        };
        assert_eq!(user("amqp://h"), ("guest".into(), "guest".into()));
        assert_eq!(user("amqp://me@h"), ("me".into(), String::new()));
        assert_eq!(user("amqp://me:@h"), ("me".into(), String::new()));
        assert_eq!(
            user("amqp://m%40e:p%3A%2F%23@h"),
            ("m@e".into(), "p:/#".into())
        );
        assert_eq!(user("amqp://me:a@b@h"), ("me".into(), "a@b".into()));
        assert_eq!(user("amqp://me:a:b@h"), ("me".into(), "a:b".into()));
    }

    #[test]
    fn the_heartbeat_is_ten_seconds_unless_given() {
        assert_eq!(parsed("amqp://h").query.heartbeat, Some(10));
        assert_eq!(
            parsed("amqp://h/v?heartbeat=30&frame_max=8192")
                .query
                .heartbeat,
            Some(30)
        );
    }

    #[test]
    fn what_would_be_misread_is_refused_without_quoting_a_password() {
        let cases = [
            ("h:5672", InvalidAddress::Scheme),
            ("http://h", InvalidAddress::Scheme),
            ("amqp:/h", InvalidAddress::Scheme),
            ("amqp://u:s3cret#x@h/v", InvalidAddress::Fragment),
            ("amqp://u:s3c/ret@h", InvalidAddress::Port),
            ("amqp://u:s3c?ret@h", InvalidAddress::Port),
            ("amqp://h:0", InvalidAddress::Port),
            ("amqp://h:65536", InvalidAddress::Port),
            ("amqp://::1", InvalidAddress::Port),
            ("amqp://[::1", InvalidAddress::Host),
            ("amqp://[::1]x", InvalidAddress::Host),
            ("amqp://[localhost]", InvalidAddress::Host),
            ("amqp://a,b", InvalidAddress::Host),
            ("amqp://h/a/b", InvalidAddress::Vhost),
            ("amqp://u:%zz@h", InvalidAddress::Encoding("the password")),
            ("amqp://u:%+1@h", InvalidAddress::Encoding("the password")),
            ("amqp://u:%ff@h", InvalidAddress::Encoding("the password")),
            ("amqp://h/%2", InvalidAddress::Encoding("the vhost")),
            ("amqp://h?heartbeat=x", InvalidAddress::Value("heartbeat")),
            (
                "amqp://h?heartbeats=1",
                InvalidAddress::Parameter("heartbeats".into()),
            ),
        ];
        for (text, refusal) in cases {
            let error = Address::parse(text).expect_err(text);
            assert_eq!(error, refusal, "{text}");
            assert!(!error.to_string().contains("s3c"), "{error}");
        }
    }
}
