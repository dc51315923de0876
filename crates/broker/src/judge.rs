//! Deciding a wave: which message got which outcome. Pure.
//!
//! A returned message does not say which publish it was. lapin hangs it on whichever confirm
//! completes next, so a confirm that carries one says nothing of its own message. Two facts make
//! the decision exact. The broker returns a message before it acknowledges it; so once every
//! confirm of a wave is in, every return is too, and they are matched by message id and routing
//! key. And lapin hands out returns in order: a confirm that carries none completed when no
//! return was left over, so its own message's return, if there is one, hangs on a confirm that
//! completed earlier. That holds for a wave with answers missing too.

use std::collections::HashMap;

use crate::error::{Closed, Level};
use crate::outcome::{Doubt, PublishOutcome, Refusal};

/// What names a message among the returned ones. The id alone would not do: two tenants may have
/// recorded the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) message_id: String,
    pub(crate) routing_key: String,
}

/// The answer to one publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Acknowledged; `carrier` if a returned message, its own or another, hung on it.
    Ack { carrier: bool },
    /// Refused by a queue.
    Nack,
    /// The channel or the connection ended.
    Failed(Failure),
    /// None before the deadline.
    Silent,
    /// The channel was not in confirm mode.
    NotConfirming,
    /// It was never handed to the client.
    Invalid(String),
}

/// How a channel ended under a publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The broker closed it.
    Closed(Closed),
    /// Anything else.
    Lost(String),
}

/// A message that came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Returned {
    pub(crate) code: u16,
    pub(crate) text: String,
}

/// All that is known when a wave is over.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// In the order in which the wave was given.
    pub(crate) answers: Vec<(Key, Answer)>,
    pub(crate) returned: HashMap<Key, Returned>,
    /// What a silent message is taken for.
    pub(crate) silence: Doubt,
    /// Whether nobody else uses the connection, so that its end is this wave's doing.
    pub(crate) own_connection: bool,
}

/// The outcomes, in order, and whether the channel can be used again.
pub(crate) fn judge(evidence: Evidence) -> (Vec<PublishOutcome>, bool) {
    let Evidence {
        answers,
        returned,
        silence,
        own_connection,
    } = evidence;
    let complete = answers.iter().all(|(_, answer)| match answer {
        Answer::Ack { .. } | Answer::Nack | Answer::Invalid(_) => true,
        Answer::Failed(_) | Answer::Silent | Answer::NotConfirming => false,
    });
    let blame = blame(&answers, own_connection);
    let reason = reason(&answers);
    let outcome = |(key, answer): (Key, Answer)| {
        if let Some(Returned { code, text }) = returned.get(&key) {
            return PublishOutcome::Unroutable {
                code: *code,
                text: text.clone(),
            };
        }
        match answer {
            Answer::Ack { carrier: false } => PublishOutcome::Confirmed,
            Answer::Ack { carrier: true } if complete => PublishOutcome::Confirmed,
            Answer::Ack { carrier: true } => {
                PublishOutcome::Unknown(reason.clone().unwrap_or_else(|| silence.clone()))
            }
            Answer::Nack => PublishOutcome::Refused(Refusal::Nack),
            Answer::Silent => {
                PublishOutcome::Unknown(reason.clone().unwrap_or_else(|| silence.clone()))
            }
            Answer::NotConfirming => PublishOutcome::Unknown(Doubt::NotConfirming),
            Answer::Invalid(reason) => PublishOutcome::Refused(Refusal::Invalid { reason }),
            Answer::Failed(failure) => match &blame {
                Some(closed) => PublishOutcome::Refused(Refusal::Closed(closed.clone())),
                None => PublishOutcome::Unknown(reason.clone().unwrap_or(match failure {
                    Failure::Closed(closed) => Doubt::Closed(closed),
                    Failure::Lost(cause) => Doubt::LinkLost { cause },
                })),
            },
        }
    };
    (answers.into_iter().map(outcome).collect(), complete)
}

/// The broker's reason, for all messages of a wave: most of them only learn that the channel is
/// closed.
fn reason(answers: &[(Key, Answer)]) -> Option<Doubt> {
    let closed = answers.iter().find_map(|(_, answer)| match answer {
        Answer::Failed(Failure::Closed(closed)) => Some(Doubt::Closed(closed.clone())),
        Answer::Failed(Failure::Lost(_))
        | Answer::Ack { .. }
        | Answer::Nack
        | Answer::Silent
        | Answer::NotConfirming
        | Answer::Invalid(_) => None,
    });
    let lost = || {
        answers.iter().find_map(|(_, answer)| match answer {
            Answer::Failed(Failure::Lost(cause)) => Some(Doubt::LinkLost {
                cause: cause.clone(),
            }),
            Answer::Failed(Failure::Closed(_))
            | Answer::Ack { .. }
            | Answer::Nack
            | Answer::Silent
            | Answer::NotConfirming
            | Answer::Invalid(_) => None,
        })
    };
    closed.or_else(lost)
}

/// The close that a message sent alone brought about.
fn blame(answers: &[(Key, Answer)], own_connection: bool) -> Option<Closed> {
    let mut sent = answers.iter().filter_map(|(_, answer)| match answer {
        Answer::Invalid(_) => None,
        Answer::Failed(_)
        | Answer::Ack { .. }
        | Answer::Nack
        | Answer::Silent
        | Answer::NotConfirming => Some(answer),
    });
    let (Some(Answer::Failed(Failure::Closed(closed))), None) = (sent.next(), sent.next()) else {
        return None;
    };
    let its_doing = match closed.level {
        Level::Channel => true,
        Level::Connection => own_connection && closed.code != Closed::FORCED,
    };
    its_doing.then(|| closed.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Key {
        Key {
            message_id: id.to_owned(),
            routing_key: "k".to_owned(),
        }
    }

    fn closed(code: u16, level: Level) -> Closed {
        Closed {
            code,
            text: "because".to_owned(),
            level,
        }
    }

    fn failed(code: u16, level: Level) -> Answer {
        Answer::Failed(Failure::Closed(closed(code, level)))
    }

    fn evidence(answers: &[(&str, Answer)], returned: &[&str]) -> Evidence {
        let back = Returned {
            code: 312,
            text: "NO_ROUTE".to_owned(),
        };
        Evidence {
            answers: answers.iter().map(|(id, a)| (key(id), a.clone())).collect(),
            returned: returned.iter().map(|id| (key(id), back.clone())).collect(),
            silence: Doubt::TimedOut,
            own_connection: false,
        }
    }

    fn words(evidence: Evidence) -> (Vec<String>, bool) {
        let (outcomes, usable) = judge(evidence);
        (outcomes.iter().map(ToString::to_string).collect(), usable)
    }

    const PLAIN: Answer = Answer::Ack { carrier: false };
    const CARRIER: Answer = Answer::Ack { carrier: true };

    #[test]
    fn a_return_counts_against_its_own_message_whichever_confirm_carried_it() {
        let wave = evidence(&[("a", CARRIER), ("b", PLAIN), ("c", PLAIN)], &["b"]);
        let (outcomes, usable) = words(wave);
        assert_eq!(
            outcomes,
            ["confirmed", "unroutable: NO_ROUTE (312)", "confirmed"]
        );
        assert!(usable);
    }

    #[test]
    fn a_carrier_is_in_doubt_while_answers_are_missing_and_a_plain_ack_is_not() {
        let wave = evidence(
            &[("a", CARRIER), ("b", PLAIN), ("z", Answer::Silent)],
            &["z"],
        );
        let (outcomes, usable) = words(wave);
        assert_eq!(
            outcomes,
            [
                "unknown: no confirm in time",
                "confirmed",
                "unroutable: NO_ROUTE (312)"
            ]
        );
        assert!(!usable);
    }

    #[test]
    fn messages_of_one_id_are_told_apart_by_their_routing_key_or_not_at_all() {
        let mut wave = evidence(&[("a", PLAIN), ("a", CARRIER), ("a", PLAIN)], &["a"]);
        wave.answers[2].0.routing_key = "other".to_owned();
        let (outcomes, _) = words(wave);
        assert_eq!(
            outcomes,
            [
                "unroutable: NO_ROUTE (312)",
                "unroutable: NO_ROUTE (312)",
                "confirmed"
            ]
        );
    }

    #[test]
    fn nothing_but_an_ack_is_a_success() {
        let lost = Answer::Failed(Failure::Lost("gone".to_owned()));
        let others = [
            (Answer::Nack, "refused: a queue does not take it (nack)"),
            (lost, "unknown: link lost: gone"),
            (Answer::Silent, "unknown: no confirm in time"),
            (
                Answer::NotConfirming,
                "unknown: the channel was not in confirm mode",
            ),
            (Answer::Invalid("too long".to_owned()), "refused: too long"),
        ];
        for (answer, wanted) in others {
            let (outcomes, _) = words(evidence(&[("a", answer)], &[]));
            assert_eq!(outcomes, [wanted]);
        }
    }

    #[test]
    fn a_close_is_blamed_on_a_message_only_if_it_was_alone() {
        let alone = evidence(&[("a", failed(404, Level::Channel))], &[]);
        assert_eq!(words(alone).0, ["refused: because (404, channel closed)"]);

        let beside_an_invalid_one = evidence(
            &[
                ("a", failed(406, Level::Channel)),
                ("b", Answer::Invalid("x".to_owned())),
            ],
            &[],
        );
        assert_eq!(
            words(beside_an_invalid_one).0[0],
            "refused: because (406, channel closed)"
        );

        let lost = Answer::Failed(Failure::Lost("closing".to_owned()));
        let several = evidence(
            &[
                ("a", lost),
                ("b", failed(404, Level::Channel)),
                ("c", PLAIN),
            ],
            &[],
        );
        let (outcomes, usable) = words(several);
        let doubt = "unknown: because (404, channel closed)";
        assert_eq!(outcomes, [doubt, doubt, "confirmed"]);
        assert!(!usable);
    }

    #[test]
    fn the_end_of_a_connection_is_blamed_on_a_message_only_if_nobody_shares_it() {
        let shared = evidence(&[("a", failed(501, Level::Connection))], &[]);
        assert_eq!(
            words(shared).0,
            ["unknown: because (501, connection closed)"]
        );
        for (code, wanted) in [
            (501, "refused: because (501, connection closed)"),
            (320, "unknown: because (320, connection closed)"),
        ] {
            let mut own = evidence(&[("a", failed(code, Level::Connection))], &[]);
            own.own_connection = true;
            assert_eq!(words(own).0, [wanted]);
        }
    }

    #[test]
    fn an_empty_wave_leaves_the_channel_usable() {
        assert_eq!(judge(evidence(&[], &[])), (vec![], true));
    }
}
