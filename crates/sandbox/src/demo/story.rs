//! What a person sees: bars on a terminal, plain lines otherwise.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::database;
use crate::ledger::LedgerReport;

/// The names of the bars, from recorded to applied.
const BARS: [&str; 5] = ["recorded", "published", "notification", "search", "audit"];

/// How often the tables are counted, and how often plain lines say so.
const COUNT: Duration = Duration::from_millis(250);
const LINE: Duration = Duration::from_secs(2);

/// How far things are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) recorded: u64,
    pub(crate) published: u64,
    /// Receipts of notification, search and audit.
    pub(crate) applied: [u64; 3],
}

impl Counts {
    pub(crate) async fn read(database: &Client) -> Result<Self, tokio_postgres::Error> {
        let row = database
            .query_one(include_str!("../sql/demo_counts.sql"), &[])
            .await?;
        let count = |column| row.get::<_, i64>(column).unsigned_abs();
        Ok(Self {
            recorded: count(0),
            published: count(1),
            applied: [count(2), count(3), count(4)],
        })
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.published == self.recorded && self.applied == [self.recorded; 3]
    }

    fn all(&self) -> [u64; 5] {
        let [notification, search, audit] = self.applied;
        [self.recorded, self.published, notification, search, audit]
    }
}

/// Tells what happens. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    began: Instant,
    stage: Option<Arc<Stage>>,
}

/// The bars of a terminal.
#[derive(Debug)]
struct Stage {
    screen: MultiProgress,
    breaking: ProgressBar,
    bars: Vec<ProgressBar>,
}

impl Story {
    pub(crate) fn start() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        Self {
            began: Instant::now(),
            stage: is_terminal.then(|| Arc::new(Stage::new())),
        }
    }

    /// Something happens.
    pub(crate) fn say(&self, what: &str) {
        let line = format!("{:5.1} s  {what}", self.began.elapsed().as_secs_f64());
        match &self.stage {
            // A line that cannot be drawn is no reason to stop.
            Some(stage) => drop(stage.screen.println(line)),
            None => println!("{line}"),
        }
    }

    /// Something is being broken right now.
    pub(crate) fn breaking(&self, what: &str) {
        if let Some(stage) = &self.stage {
            stage.breaking.set_message(format!("now: {what}"));
        }
        self.say(what);
    }

    /// It is whole again.
    pub(crate) fn mended(&self, what: &str) {
        if let Some(stage) = &self.stage {
            stage.breaking.set_message("now: all is up");
        }
        self.say(what);
    }

    /// Counts and shows, until the handle is dropped.
    pub(crate) fn follow(&self, database_url: &str) -> Following {
        let (story, url) = (self.clone(), database_url.to_owned());
        Following(tokio::spawn(async move {
            let mut spoken = Instant::now();
            // The database may be what is broken right now.
            loop {
                if let Ok(database) = database::connect(&url).await {
                    while let Ok(counts) = Counts::read(&database).await {
                        story.show(&counts, &mut spoken);
                        tokio::time::sleep(COUNT).await;
                    }
                }
                tokio::time::sleep(COUNT).await;
            }
        }))
    }

    /// The judgement, for people; the line for programs comes after it.
    pub(crate) fn end(&self, report: &LedgerReport) {
        if let Some(stage) = &self.stage {
            stage.clear();
        }
        print!("{report}");
        if report.is_clean() {
            println!("every committed event arrived, and each had each effect once");
        }
    }

    fn show(&self, counts: &Counts, spoken: &mut Instant) {
        match &self.stage {
            Some(stage) => stage.show(counts),
            None if spoken.elapsed() >= LINE => {
                *spoken = Instant::now();
                let named = BARS.iter().zip(counts.all());
                let words: Vec<String> = named
                    .map(|(name, count)| format!("{name} {count}"))
                    .collect();
                let backlog = counts.recorded.saturating_sub(counts.published);
                self.say(&format!("{}, backlog {backlog}", words.join(", ")));
            }
            None => {}
        }
    }
}

/// The task behind [`Story::follow`].
#[derive(Debug)]
pub(crate) struct Following(JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Stage {
    fn new() -> Self {
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let breaking = screen.add(ProgressBar::no_length());
        breaking.set_style(style("{spinner} {msg}"));
        breaking.enable_steady_tick(COUNT);
        let bar = |name: &&'static str| {
            let bar = screen.add(ProgressBar::new(1));
            bar.set_style(style("{prefix:>13} {bar:40} {pos}/{len}"));
            bar.set_prefix(*name);
            bar
        };
        Self {
            bars: BARS.iter().map(bar).collect(),
            breaking,
            screen,
        }
    }

    /// Each bar in proportion to what is recorded.
    fn show(&self, counts: &Counts) {
        for (bar, count) in self.bars.iter().zip(counts.all()) {
            // A bar of length 0 is drawn full.
            bar.set_length(counts.recorded.max(1));
            bar.set_position(count);
        }
    }

    fn clear(&self) {
        self.breaking.finish_and_clear();
        self.bars.iter().for_each(ProgressBar::finish);
    }
}

/// The templates are constants; one that did not parse would show as the default style.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
