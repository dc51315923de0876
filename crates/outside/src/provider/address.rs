//! Which addresses may be connected to. A tenant names its own URL, and a name may resolve to
//! anything: so each address is judged when it is about to be used, not the name before.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Networks that are not the public internet: (network, length of its prefix).
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10), // carrier-grade NAT, and clouds' own services
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16), // link-local, and clouds' metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4), // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4), // reserved, and broadcast
];

/// The public ones of version 6 are all in here,
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// except for these.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // Teredo and other protocols' own
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4 carries a version 4 address
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
/// NAT64 carries a version 4 address in its last 32 bits.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether the address is one of the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4
            .iter()
            .any(|(network, prefix)| within_v4(address, *network, *prefix)),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(carried) = address.to_ipv4_mapped() {
        return is_public(IpAddr::V4(carried));
    }
    if within_v6(address, NAT64) {
        let [.., a, b, c, d] = address.octets();
        return is_public(IpAddr::V4(Ipv4Addr::new(a, b, c, d)));
    }
    within_v6(address, GLOBAL_V6)
        && !NOT_PUBLIC_V6
            .iter()
            .any(|network| within_v6(address, *network))
}

fn within_v4(address: Ipv4Addr, network: Ipv4Addr, prefix: u32) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= prefix
}

fn within_v6(address: Ipv6Addr, (network, prefix): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= prefix
}

/// A name whose addresses are all forbidden.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{host} has no public address")]
pub(super) struct Forbidden {
    pub(super) host: String,
}

type Lookup = Arc<dyn Fn(String) -> Looking + Send + Sync>;
type Looking = futures_util::future::BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Resolves names and hands the client nothing but public addresses, and it connects to no others.
#[derive(Clone)]
pub(super) struct PublicOnly {
    lookup: Lookup,
}

impl fmt::Debug for PublicOnly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PublicOnly").finish_non_exhaustive()
    }
}

impl PublicOnly {
    /// With the system's resolver.
    pub(super) fn system() -> Self {
        Self::with(Arc::new(|host| {
            Box::pin(async move {
                // The client puts the URL's port in.
                let found = tokio::net::lookup_host((host, 0)).await?;
                Ok(found.collect())
            })
        }))
    }

    fn with(lookup: Lookup) -> Self {
        Self { lookup }
    }

    async fn public(
        lookup: Lookup,
        host: String,
    ) -> Result<Addrs, Box<dyn std::error::Error + Send + Sync>> {
        let found = lookup(host.clone()).await?;
        let public: Vec<SocketAddr> = found
            .into_iter()
            .filter(|address| is_public(address.ip()))
            .collect();
        if public.is_empty() {
            return Err(Forbidden { host }.into());
        }
        Ok(Box::new(public.into_iter()))
    }
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(Self::public(
            Arc::clone(&self.lookup),
            name.as_str().to_owned(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_of_the_public_internet_are_told() {
        let forbidden = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "239.255.255.255",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.2.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "fe80::1",
            "fc00::1",
            "fd12:3456::1",
            "fec0::1",
            "ff02::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
        ];
        for text in forbidden {
            assert!(!is_public(text.parse().expect(text)), "{text}");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "172.15.255.255",
            "172.32.0.1",
            "100.63.255.255",
            "11.0.0.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
        ];
        for text in public {
            assert!(is_public(text.parse().expect(text)), "{text}");
        }
    }

    fn answering(addresses: &'static [&'static str]) -> PublicOnly {
        PublicOnly::with(Arc::new(move |_| {
            let found = addresses
                .iter()
                .map(|text| SocketAddr::new(text.parse().expect("an address"), 0))
                .collect();
            Box::pin(std::future::ready(Ok(found)))
        }))
    }

    async fn resolved(resolver: &PublicOnly) -> Result<Vec<IpAddr>, String> {
        let name: Name = "hooks.example".parse().expect("a name");
        let found = resolver.resolve(name).await;
        found
            .map(|found| found.map(|address| address.ip()).collect())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_name_gives_its_public_addresses_only() {
        let mixed = answering(&["127.0.0.1", "8.8.8.8", "::1", "2606:4700::1111"]);
        let found = resolved(&mixed).await.expect("two of them");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|address| is_public(*address)));
    }

    #[tokio::test]
    async fn a_name_of_forbidden_addresses_gives_none() {
        let inside = answering(&["169.254.169.254", "fd00::1"]);
        let refused = resolved(&inside).await.expect_err("none is public");
        assert!(refused.contains("hooks.example"), "{refused}");
    }
}
