//! Tells the crate the number of the newest migration, and cargo to look again when one is added.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = "../../migrations";
    println!("cargo:rerun-if-changed={folder}");
    let mut newest = 0;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let number = name
            .strip_prefix('V')
            .and_then(|rest| rest.split_once("__"));
        if let Some((number, _)) = number {
            newest = newest.max(number.parse::<i32>()?);
        }
    }
    println!("cargo:rustc-env=NEWEST_MIGRATION={newest}");
    Ok(())
}
