//! What a command reports: sections for people, one JSON value for programs.

use std::io;
use std::process::ExitCode;

use serde_json::{Map, Value};

use crate::listing::Listing;
use crate::render;

/// A report in the making.
#[derive(Debug, Default)]
pub(crate) struct Report {
    sections: Vec<Section>,
    json: Map<String, Value>,
    /// The whole JSON, if it is not the object of the sections.
    instead: Option<Value>,
    problems: bool,
    silent: bool,
}

#[derive(Debug)]
enum Section {
    /// A sentence.
    Line(String),
    /// Rows under a title.
    Table(String, Listing),
    /// One row, a line for each column.
    Card(Listing),
}

impl Report {
    /// Everything has been printed already.
    pub(crate) fn silent() -> Self {
        Self {
            silent: true,
            ..Self::default()
        }
    }

    /// One listing is the whole report: its JSON is the array of its rows.
    pub(crate) fn listing(listing: Listing, if_empty: &str) -> Self {
        let json = listing.to_json();
        let section = match listing.is_empty() {
            true => Section::Line(if_empty.to_owned()),
            false => Section::Table(String::new(), listing),
        };
        Self {
            sections: vec![section],
            instead: Some(json),
            ..Self::default()
        }
    }

    /// One sentence, and what a program wants to know.
    pub(crate) fn done(sentence: impl Into<String>, json: Value) -> Self {
        Self {
            sections: vec![Section::Line(sentence.into())],
            instead: Some(json),
            ..Self::default()
        }
    }

    /// A sentence for people.
    pub(crate) fn line(mut self, sentence: impl Into<String>) -> Self {
        self.sections.push(Section::Line(sentence.into()));
        self
    }

    /// A value for programs.
    pub(crate) fn value(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.json.insert(name.to_owned(), value.into());
        self
    }

    /// Rows under a title, left out for people if there are none.
    pub(crate) fn table(mut self, name: &str, listing: Listing) -> Self {
        self.json.insert(name.to_owned(), listing.to_json());
        if !listing.is_empty() {
            let title = name.replace('_', " ");
            self.sections.push(Section::Table(title, listing));
        }
        self
    }

    /// One row, a line for each column.
    pub(crate) fn card(mut self, name: &str, listing: Listing) -> Self {
        self.json.insert(name.to_owned(), listing.first());
        self.sections.push(Section::Card(listing));
        self
    }

    /// Makes the program end with 1.
    pub(crate) fn with_problems(mut self, problems: bool) -> Self {
        self.problems = problems;
        self
    }

    pub(crate) fn ending(&self) -> ExitCode {
        if self.problems {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    /// Prints it on stdout.
    pub(crate) fn print(self, json: bool) -> io::Result<()> {
        if self.silent {
            return Ok(());
        }
        if json {
            let value = self.instead.unwrap_or(Value::Object(self.json));
            return render::say(&format!("{value:#}\n"));
        }
        let sections = self.sections.iter().map(|section| match section {
            Section::Line(text) => format!("{}\n", render::safe(text)),
            Section::Table(title, listing) => render::table(title, listing),
            Section::Card(listing) => render::card(listing),
        });
        render::say(&sections.collect::<Vec<_>>().join("\n"))
    }
}
