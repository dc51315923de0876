//! The demo, small, as people run it: the real processes, a relay killed, the broker killed.

use std::process::Stdio;

use sandbox::binary;
use tokio::process::Command;

/// The contract of its last line.
const NAMES: [&str; 11] = [
    "committed",
    "published",
    "duplicates_on_wire",
    "effects",
    "lost",
    "phantom",
    "doubled",
    "out_of_order",
    "seconds",
    "seed",
    "tickets",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_ends_with_every_effect_once() {
    let ran = Command::new(binary("demo").unwrap())
        .args(["--tickets", "300", "--seed", "7"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{printed}\n{words}");
    let last: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let fields = last.as_object().unwrap();
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut expected = NAMES;
    expected.sort_unstable();
    assert_eq!(names, expected);

    let count = |name: &str| fields[name].as_u64().unwrap();
    assert!(count("committed") >= 300, "{last}");
    assert_eq!(count("published"), count("committed"), "{last}");
    assert!(count("duplicates_on_wire") >= 1, "{last}");
    for effect in ["notification", "search", "audit"] {
        assert_eq!(fields["effects"][effect], fields["committed"], "{last}");
    }
    for fault in ["lost", "phantom", "doubled", "out_of_order"] {
        assert_eq!(count(fault), 0, "{last}");
    }
    assert_eq!((count("seed"), count("tickets")), (7, 300));
}
