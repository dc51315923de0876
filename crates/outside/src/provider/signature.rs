//! Signatures in the form of Standard Webhooks: HMAC-SHA256 over `<id>.<seconds>.<body>`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretBox};
use sha2::Sha256;

const PREFIX: &str = "whsec_";
/// What the form asks of a secret: shorter can be guessed, longer adds nothing.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A key that is shared with one receiver.
#[derive(Debug)]
pub struct Secret(SecretBox<Vec<u8>>);

/// The keys of one receiver: while a key is changed both sign, and the receiver takes either.
#[derive(Debug)]
pub struct Secrets(Vec<Secret>);

impl Secret {
    /// Reads `whsec_` and 24 to 64 bytes in Base64.
    ///
    /// # Errors
    /// What is wrong with it, without showing it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let encoded = text
            .strip_prefix(PREFIX)
            .ok_or_else(|| format!("a secret starts with {PREFIX}"))?;
        let key = STANDARD
            .decode(encoded)
            .map_err(|_| format!("a secret is {PREFIX} and Base64"))?;
        if !KEY_BYTES.contains(&key.len()) {
            let (least, most) = (KEY_BYTES.start(), KEY_BYTES.end());
            return Err(format!(
                "a secret has {least} to {most} bytes, this one has {}",
                key.len()
            ));
        }
        Ok(Self(SecretBox::new(Box::new(key))))
    }

    fn sign(&self, signed: &[&[u8]]) -> String {
        // HMAC takes a key of any length, so this has no other arm in practice.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.0.expose_secret()) else {
            return String::new();
        };
        for (index, part) in signed.iter().enumerate() {
            if index > 0 {
                mac.update(b".");
            }
            mac.update(part);
        }
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

impl Secrets {
    /// One or two secrets, the new one first.
    ///
    /// # Errors
    /// What is wrong, without showing it.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let secrets: Vec<Secret> = texts
            .into_iter()
            .map(Secret::parse)
            .collect::<Result<_, _>>()?;
        match secrets.len() {
            1 | 2 => Ok(Self(secrets)),
            other => Err(format!("one secret or two, not {other}")),
        }
    }

    /// The value of `webhook-signature`.
    #[must_use]
    pub fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let seconds = seconds.to_string();
        let signed = [id.as_bytes(), seconds.as_bytes(), body];
        let each: Vec<String> = self
            .0
            .iter()
            .map(|secret| format!("v1,{}", secret.sign(&signed)))
            .collect();
        each.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;

    #[test]
    fn the_published_example_is_signed_as_published() {
        let secrets = Secrets::parse([SECRET]).expect("a secret");
        let signature = secrets.sign(ID, 1_614_265_330, BODY);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn while_a_secret_is_changed_both_sign() {
        let other = format!("whsec_{}", STANDARD.encode([7; 32]));
        let secrets = Secrets::parse([other.as_str(), SECRET]).expect("two secrets");
        let both = secrets.sign(ID, 1_614_265_330, BODY);
        let each: Vec<&str> = both.split(' ').collect();
        assert_eq!(each.len(), 2);
        assert_ne!(each[0], each[1]);
        assert_eq!(each[1], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_bad_secret_is_refused_without_showing_it() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        for bad in ["", "hunter2", "whsec_", "whsec_hunter2!", &short] {
            let told = Secrets::parse([bad]).expect_err(bad);
            assert!(!told.contains("hunter2"), "{told}");
        }
        assert!(Secrets::parse([]).is_err());
        assert!(Secrets::parse([SECRET, SECRET, SECRET]).is_err());
        assert!(!format!("{:?}", Secrets::parse([SECRET])).contains("MfKQ"));
    }
}
