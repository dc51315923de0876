//! Binding patterns of a topic exchange.

/// Whether an event type fits a pattern: `*` is one word, `#` any number of words.
#[must_use]
pub fn matches(pattern: &str, event_type: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('.').collect();
    let words: Vec<&str> = event_type.split('.').collect();
    fits(&pattern, &words)
}

fn fits(pattern: &[&str], words: &[&str]) -> bool {
    match (pattern.split_first(), words.split_first()) {
        (None, None) => true,
        (Some((&"#", rest)), _) => (0..=words.len()).any(|skipped| fits(rest, &words[skipped..])),
        (Some((&word, rest)), Some((&first, others))) => {
            (word == "*" || word == first) && fits(rest, others)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_fit_as_the_broker_has_it() {
        for (pattern, event_type, fit) in [
            ("#", "ticket.created", true),
            ("ticket.#", "ticket", true),
            ("ticket.#", "ticket.created", true),
            ("ticket.*", "ticket.created.late", false),
            ("*.created", "ticket.created", true),
            ("ticket.created", "ticket.createdx", false),
            ("invoice.#", "ticket.created", false),
        ] {
            assert_eq!(matches(pattern, event_type), fit, "{pattern} {event_type}");
        }
    }
}
