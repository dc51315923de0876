//! The private RabbitMQ: how it is made, started and spoken to.
//!
//! Orders go to the node as Erlang expressions by `erl_call`, which needs some milliseconds where
//! `rabbitmqctl` starts an Erlang machine of its own for each.

use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use tokio::io::AsyncWriteExt;

use crate::error::SandboxError;
use crate::folder::{Folder, State};
use crate::launch;
use crate::options::SandboxOptions;
use crate::programs;

/// The user all sites connect as.
pub(crate) const USER: &str = "ticketflow";

/// How long the node may take over one order; it is stopped or gone if it takes longer.
const ORDER_TIMEOUT: Duration = Duration::from_secs(20);

/// Writes the node's configuration.
pub(crate) fn create(
    folder: &Folder,
    state: &State,
    options: &SandboxOptions,
) -> Result<(), SandboxError> {
    let mut terms = vec![
        format!(
            "{{tcp_listeners, [{{\"127.0.0.1\", {}}}]}}",
            state.amqp_port
        ),
        format!("{{default_user, <<\"{USER}\">>}}"),
        format!("{{default_pass, <<\"{}\">>}}", state.password),
        "{log, [{console, [{enabled, false}]}, {file, [{level, warning}]}]}".to_owned(),
        // A full disk of the machine is no fault the tests ask for.
        "{disk_free_limit, 50000000}".to_owned(),
    ];
    terms.extend_from_slice(&options.rabbitmq_terms);
    folder.write(
        "advanced.config",
        &format!("[{{rabbit, [{}]}}].\n", terms.join(", ")),
    )?;
    folder.write("enabled_plugins", "[].\n")?;
    let cookie: String = std::iter::repeat_with(fastrand::alphanumeric)
        .take(32)
        .collect();
    folder.write(".erlang.cookie", &cookie)
}

/// The command that becomes the port mapper. Started by us, as Erlang would detach its own and
/// leave it running. Its name is a link in the folder, to be known by.
pub(crate) fn epmd_command(folder: &Folder, state: &State) -> Result<Command, SandboxError> {
    let link = folder.at("run/epmd");
    if !link.exists() {
        std::os::unix::fs::symlink(programs::erlang("epmd")?, &link)
            .map_err(SandboxError::io("link epmd"))?;
    }
    let mut epmd = launch::command(folder, link);
    epmd.args([
        "-port",
        &state.epmd_port.to_string(),
        "-address",
        "127.0.0.1",
    ]);
    Ok(epmd)
}

/// The command that becomes the node.
pub(crate) fn server_command(folder: &Folder, state: &State) -> Result<Command, SandboxError> {
    let mut node = launch::command(folder, programs::rabbitmq_server()?);
    // The marker is for us: it makes the command line name the folder.
    node.arg("-ticketflow_sandbox").arg(folder.path());
    environment(&mut node, folder, state);
    // With this set the script becomes the Erlang machine instead of waiting for it.
    node.env("RABBITMQ_ALLOW_INPUT", "1").env(
        "RABBITMQ_SERVER_START_ARGS",
        "-noinput -start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
    );
    Ok(node)
}

/// RabbitMQ's own tool, for what has no order here.
pub(crate) fn rabbitmqctl_command(folder: &Folder, state: &State) -> Result<Command, SandboxError> {
    let mut tool = launch::command(folder, programs::rabbitmqctl()?);
    environment(&mut tool, folder, state);
    tool.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(tool)
}

/// The URL of one of its virtual hosts.
pub(crate) fn url(state: &State, port: u16, vhost: &str) -> String {
    let password = &state.password;
    let vhost = vhost.replace('/', "%2f");
    format!("amqp://{USER}:{password}@127.0.0.1:{port}/{vhost}")
}

/// Evaluates Erlang expressions on the node; the last one must yield text (an iolist).
pub(crate) async fn evaluate(
    folder: &Folder,
    state: &State,
    expressions: &str,
) -> Result<String, SandboxError> {
    let refused = |words: String| SandboxError::Broker {
        what: format!("evaluate {expressions}"),
        words,
    };
    let mut call = tokio::process::Command::from(erl_call(folder, state)?);
    let mut child = call
        .kill_on_drop(true)
        .spawn()
        .map_err(SandboxError::io("run erl_call"))?;
    // Base64 as a list: the term printer cuts binaries short, and escapes other text.
    let text = format!("unicode:characters_to_binary(begin {expressions} end)");
    let script = format!("binary_to_list(base64:encode({text})).\n");
    let answered = async {
        if let Some(mut input) = child.stdin.take() {
            input.write_all(script.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(ORDER_TIMEOUT, answered)
        .await
        .map_err(|_| refused("no answer in time".to_owned()))?
        .map_err(SandboxError::io("talk to erl_call"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    decode(&printed).ok_or_else(|| {
        refused(format!(
            "{printed}{}",
            String::from_utf8_lossy(&output.stderr)
        ))
    })
}

/// Text as an Erlang binary.
pub(crate) fn binary(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    format!("<<{}>>", bytes.join(","))
}

fn erl_call(folder: &Folder, state: &State) -> Result<Command, SandboxError> {
    let mut call = launch::command(folder, programs::erlang("erl_call")?);
    // The name it takes by itself is the same for calls of the same second.
    let caller = format!("call-{:016x}", fastrand::u64(..));
    call.args(["-sname", &state.node, "-h", &caller, "-e"])
        .env("ERL_EPMD_PORT", state.epmd_port.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(call)
}

/// The text in `{ok, "…"}`, or in `{ok, [89, …]}` as a long list is printed.
fn decode(printed: &str) -> Option<String> {
    let term = printed.trim().strip_prefix("{ok, ")?.strip_suffix('}')?;
    let encoded: Vec<u8> = match term.strip_prefix('[') {
        Some(list) => list
            .trim_end_matches(']')
            .split(',')
            .filter(|number| !number.trim().is_empty())
            .map(|number| number.trim().parse().ok())
            .collect::<Option<_>>()?,
        None => term.strip_prefix('"')?.strip_suffix('"')?.into(),
    };
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .ok()?;
    String::from_utf8(bytes).ok()
}

fn environment(command: &mut Command, folder: &Folder, state: &State) {
    command
        .env("ERL_EPMD_PORT", state.epmd_port.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        // Cores are shared with everything else here: a scheduler without work must not spin on one.
        // https://www.rabbitmq.com/docs/runtime#busy-waiting
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "+sbwt none +sbwtdcpu none +sbwtdio none",
        )
        .env("RABBITMQ_NODENAME", &state.node)
        .env("RABBITMQ_DIST_PORT", state.distribution_port.to_string())
        // No configuration of the machine's own broker, and none of its plugins.
        .env("RABBITMQ_CONF_ENV_FILE", folder.at("none"))
        .env("RABBITMQ_CONFIG_FILE", folder.at("none"))
        .env(
            "RABBITMQ_ADVANCED_CONFIG_FILE",
            folder.at("advanced.config"),
        )
        .env(
            "RABBITMQ_ENABLED_PLUGINS_FILE",
            folder.at("enabled_plugins"),
        )
        .env("RABBITMQ_MNESIA_BASE", folder.at("mnesia"))
        .env("RABBITMQ_LOG_BASE", folder.at("log"))
        .env("RABBITMQ_PID_FILE", folder.at("run/node.pid"));
}

#[cfg(test)]
mod tests {
    use super::{binary, decode};

    #[test]
    fn an_answer_is_the_text_inside_the_term() {
        assert_eq!(decode("{ok, \"YQpi\"}").as_deref(), Some("a\nb"));
        assert_eq!(decode("{ok, [89, 81, 112, 105]}").as_deref(), Some("a\nb"));
        assert_eq!(decode("{ok, []}").as_deref(), Some(""));
        assert_eq!(decode("{error, \"*** eval\"}"), None);
    }

    #[test]
    fn any_text_is_a_binary() {
        assert_eq!(binary("a\"é"), "<<97,34,195,169>>");
    }
}
