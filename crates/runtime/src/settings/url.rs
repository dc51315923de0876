//! A URL with a password: given once, or kept in a file that is read again for each connection.

use std::path::PathBuf;

use secrecy::SecretString;

use super::{Problems, Settings};

/// Where a URL comes from. Never shown.
#[derive(Debug, Clone)]
pub enum SecretUrl {
    /// As it was given.
    Given(SecretString),
    /// The first line of a file, whose content may change while the process runs.
    File(PathBuf),
}

impl SecretUrl {
    /// The URL that the settings `<name>` and `<name>_file` ask for: that of the higher layer.
    #[must_use]
    pub fn of(settings: &Settings, name: &str) -> Option<Self> {
        let file_name = format!("{name}_file");
        let given = settings.secret(name).map(Self::Given);
        let file = settings.path(&file_name).map(Self::File);
        match (given, file) {
            (Some(given), Some(file)) => {
                let file_wins = settings.rank(&file_name) > settings.rank(name);
                Some(if file_wins { file } else { given })
            }
            (given, file) => given.or(file),
        }
    }

    /// Adds what is wrong with the two settings, and with the URL as `valid` sees it.
    pub fn check(
        settings: &Settings,
        name: &str,
        problems: &mut Problems,
        valid: impl Fn(&SecretString) -> Result<(), String>,
    ) {
        let file_name = format!("{name}_file");
        let both = settings.secret(name).is_some() && settings.path(&file_name).is_some();
        if both && settings.rank(name) == settings.rank(&file_name) {
            let (one, other) = (settings.origin(name), settings.origin(&file_name));
            problems.push(format!("{one} and {other} are both given; one is enough"));
        }
        let Some(url) = Self::of(settings, name) else {
            let variable = name.to_uppercase();
            problems.push(format!("{name} is missing: set {variable} or {file_name}"));
            return;
        };
        let origin = settings.origin(match url {
            Self::Given(_) => name,
            Self::File(_) => &file_name,
        });
        let checked = url.read().and_then(|url| valid(&url));
        problems.note(checked.map_err(|problem| format!("{origin}: {problem}")));
    }

    /// The URL as it is now.
    ///
    /// # Errors
    /// Why the file cannot be read, naming it.
    pub fn read(&self) -> Result<SecretString, String> {
        match self {
            Self::Given(url) => Ok(url.clone()),
            Self::File(path) => {
                let shown = path.display();
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("file {shown} cannot be read: {error}"))?;
                let line = text.lines().next().unwrap_or_default().trim();
                if line.is_empty() {
                    return Err(format!("file {shown} has no URL in its first line"));
                }
                Ok(SecretString::from(line))
            }
        }
    }
}
