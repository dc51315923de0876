//! The contract's acceptance tests, by the names of the design.

mod consuming;
mod outside;
mod producing;
mod relaying;
