//! What the proof needs inside of the programs: places where they are killed, and bugs that are
//! planted. Each crate names its own; without the features nothing of it is compiled.

pub mod crash;
pub mod mutant;
