//! Free loopback ports that stay ours while a server is down.

use std::net::{Ipv4Addr, TcpListener};

use crate::error::SandboxError;

/// Below the range the kernel takes outgoing ports from (32768 on Linux): a stopped server's port
/// must not become somebody's source port before the server is started again.
const RANGE: std::ops::Range<u16> = 15_000..32_000;

/// As many different ports that nobody listens on.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], SandboxError> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = free_listener()?;
        *port = listener
            .local_addr()
            .map_err(SandboxError::io("read a port's number"))?
            .port();
        held.push(listener);
    }
    Ok(ports)
}

fn free_listener() -> Result<TcpListener, SandboxError> {
    let mut refused = std::io::Error::from(std::io::ErrorKind::AddrInUse);
    for _ in 0..200 {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, fastrand::u16(RANGE))) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(SandboxError::Io {
        what: "find a free loopback port".to_owned(),
        source: refused,
    })
}

#[cfg(test)]
mod tests {
    use super::{RANGE, free_ports};

    #[test]
    fn ports_differ_and_are_in_the_range() {
        let mut ports = free_ports::<20>().unwrap().to_vec();
        assert!(ports.iter().all(|port| RANGE.contains(port)));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }
}
