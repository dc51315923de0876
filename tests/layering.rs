//! Dependencies point one way, and the two servers' clients stay where they belong.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// A crate may depend on crates of lower layers only, so those of one layer not on each other.
const LAYERS: [&[&str]; 6] = [
    &["event", "proof", "schema"],
    &["outbox", "inbox", "broker", "runtime"],
    &["topology", "outside"],
    &["producer", "relay", "consumer", "ops"],
    &["sandbox"],
    &["bench", "tests"],
];

/// What runs servers, and breaks them, must never be part of a program that people deploy.
const NOT_DEPLOYED: [&str; 3] = ["sandbox", "bench", "tests"];

/// Libraries that one part alone may name, and that part.
const OWNED: [(&str, &[&str]); 3] = [
    ("lapin", &["broker"]),
    ("axum", &["producer", "runtime"]),
    ("refinery", &["schema"]),
];

fn workspace() -> Metadata {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec()
        .unwrap()
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

/// What a crate needs to be built; tests may use more.
fn needs(package: &Package) -> impl Iterator<Item = &str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != DependencyKind::Development)
        .map(|dependency| dependency.name.as_str())
}

fn breaches(rule: impl Fn(&Package) -> Vec<String>) -> Vec<String> {
    workspace().packages.iter().flat_map(rule).collect()
}

#[test]
fn every_crate_has_its_layer() {
    let homeless = breaches(|package| match layer(&package.name) {
        Some(_) => Vec::new(),
        None => vec![package.name.to_string()],
    });
    assert!(
        homeless.is_empty(),
        "say in LAYERS where these belong: {homeless:?}"
    );
}

#[test]
fn dependencies_point_down() {
    let upward = breaches(|package| {
        let own = layer(&package.name);
        needs(package)
            .filter(|name| layer(name).is_some() && layer(name) >= own)
            .map(|name| format!("{} -> {name}", package.name))
            .collect()
    });
    assert!(upward.is_empty(), "{upward:?}");
}

#[test]
fn nothing_deployed_needs_the_sandbox() {
    let deployed = breaches(|package| {
        if NOT_DEPLOYED.contains(&package.name.as_str()) {
            return Vec::new();
        }
        needs(package)
            .filter(|name| NOT_DEPLOYED.contains(name))
            .map(|name| format!("{} -> {name}", package.name))
            .collect()
    });
    assert!(deployed.is_empty(), "{deployed:?}");
}

#[test]
fn a_library_with_an_owner_is_named_by_it_alone() {
    let elsewhere = breaches(|package| {
        needs(package)
            .filter(|name| {
                OWNED.iter().any(|(library, owners)| {
                    library == name && !owners.contains(&package.name.as_str())
                })
            })
            .map(|name| format!("{} -> {name}", package.name))
            .collect()
    });
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

#[test]
fn versions_are_in_one_place() {
    let own_versions = breaches(|package| {
        let manifest = std::fs::read_to_string(&package.manifest_path).unwrap();
        let mut in_dependencies = false;
        let own = manifest.lines().filter(|line| {
            if line.starts_with('[') {
                in_dependencies = line.contains("dependencies");
            }
            let names_one = line.starts_with(|first: char| first.is_ascii_alphanumeric());
            in_dependencies && names_one && !line.contains("workspace = true")
        });
        own.map(|line| format!("{}: {line}", package.name))
            .collect()
    });
    assert!(own_versions.is_empty(), "{own_versions:?}");
}
