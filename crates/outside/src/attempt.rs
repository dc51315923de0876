//! One try: a task in doubt is asked for first, then sent if that settles nothing.

use crate::decide::Tried;
use crate::provider::{Knowledge, Outcome, Provider};
use crate::task::Task;

/// Tries a task once.
pub(crate) async fn attempt(provider: &dyn Provider, task: &Task) -> Tried {
    let known = match task.in_doubt {
        true => provider.ask(task).await,
        false => Knowledge::NotKnown,
    };
    let in_doubt = match known {
        Knowledge::NotKnown => false,
        Knowledge::CannotBeAsked => true,
        Knowledge::Taken => {
            tracing::info!(task.id = %task.task_id, "a task in doubt was taken");
            return Tried {
                outcome: Outcome::Delivered,
                in_doubt: false,
            };
        }
        // Sending it blindly would give up the certainty that asking promises.
        Knowledge::NoAnswer { told } => {
            return Tried {
                outcome: Outcome::Unknown { told },
                in_doubt: true,
            };
        }
    };
    let outcome = provider.send(task).await;
    Tried { outcome, in_doubt }
}
