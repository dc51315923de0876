//! A connection lent by the pool, which gets it back only in a known state.

use deadpool_postgres::Object;
use tokio_postgres::CancelToken;

use super::connect::Connector;

/// While `known` is false, dropping it (also by cancellation of whoever holds it) ends what the
/// connection is doing and closes it.
pub(super) struct Lent {
    object: Option<Object>,
    token: CancelToken,
    connector: Connector,
    known: bool,
}

impl Lent {
    pub(super) fn new(object: Object, connector: Connector) -> Self {
        Self {
            token: object.cancel_token(),
            object: Some(object),
            connector,
            known: false,
        }
    }

    /// The connection; there until the drop.
    pub(super) fn connection(&mut self) -> Option<&mut Object> {
        self.object.as_mut()
    }

    /// Gives it back to be lent again.
    pub(super) fn give_back(mut self) {
        self.known = true;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else {
            return;
        };
        if !self.known {
            self.connector.cancel(self.token.clone());
            drop(Object::take(object));
        }
    }
}
