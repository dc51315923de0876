//! TLS to PostgreSQL, verified against the system's certificates or those of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What makes TLS connections, trusting the certificates of `ca_file` or else the system's.
pub(super) fn connector(ca_file: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let Some(path) = ca_file else {
        let (connector, unread) = MakeRustlsConnect::with_native_certs()
            .map_err(|errors| format!("the system's certificates cannot be read: {errors:?}"))?;
        if !unread.is_empty() {
            tracing::debug!(?unread, "system certificates that cannot be read");
        }
        return Ok(connector);
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("file {}: {error}", path.display()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// The certificates of a PEM file.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let unreadable = |error| format!("file {shown} has no readable certificates: {error}");
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(unreadable)?
        .collect();
    match certificates.map_err(unreadable)? {
        none if none.is_empty() => Err(format!("file {shown} has no certificate")),
        some => Ok(some),
    }
}
