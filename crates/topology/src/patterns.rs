//! Binding patterns over event types, as PostgreSQL's regular expressions.

/// The expression that matches `'.' || event_type` when the broker's topic exchange would match
/// the event type: `*` stands for one word, `#` for any number of words.
pub(crate) fn expression(pattern: &str) -> String {
    let words = pattern.split('.').map(|word| match word {
        "*" => r"\.[^.]+".to_owned(),
        "#" => r"(\.[^.]+)*".to_owned(),
        word => format!(r"\.{}", escaped(word)),
    });
    format!("^{}$", words.collect::<String>())
}

fn escaped(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let parts = word.chars().map(|c| match plain(c) {
        true => c.to_string(),
        false => format!("\\{c}"),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_literally_and_wildcards_by_the_word() {
        assert_eq!(expression("#"), r"^(\.[^.]+)*$");
        assert_eq!(expression("ticket.#"), r"^\.ticket(\.[^.]+)*$");
        assert_eq!(expression("*.created"), r"^\.[^.]+\.created$");
        assert_eq!(expression("a-b"), r"^\.a\-b$");
    }
}
