//! The faults, one by one, and putting things right again.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::sleep;

use crate::demo::cast::Cast;
use crate::demo::story::Story;
use crate::pair::Sandbox;
use crate::program::Program;
use crate::proxy::FaultProxy;

/// Longer than a relay's lease.
const FROZEN: Duration = Duration::from_secs(5);

/// Long enough that every process meets it.
const SHORT: Duration = Duration::from_secs(3);

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    KillRelay,
    FreezeRelay,
    StopRelay,
    KillConsumer,
    FreezeConsumer,
    KillProducer,
    KillDatabase,
    FreezeDatabase,
    KillBroker,
    FreezeBroker,
    MemoryAlarm,
    DiskAlarm,
    CutDatabase,
    CutBroker,
    SwallowBroker,
    Delay,
    Slice,
}

const ALL: [Fault; 17] = [
    Fault::KillRelay,
    Fault::FreezeRelay,
    Fault::StopRelay,
    Fault::KillConsumer,
    Fault::FreezeConsumer,
    Fault::KillProducer,
    Fault::KillDatabase,
    Fault::FreezeDatabase,
    Fault::KillBroker,
    Fault::FreezeBroker,
    Fault::MemoryAlarm,
    Fault::DiskAlarm,
    Fault::CutDatabase,
    Fault::CutBroker,
    Fault::SwallowBroker,
    Fault::Delay,
    Fault::Slice,
];

impl Fault {
    pub(super) fn draw(random: &mut Rng) -> Self {
        ALL[random.usize(0..ALL.len())]
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::KillRelay => "a relay gets SIGKILL",
            Self::FreezeRelay => "a relay is frozen for longer than its lease",
            Self::StopRelay => "a relay is stopped cleanly",
            Self::KillConsumer => "a consumer gets SIGKILL",
            Self::FreezeConsumer => "a consumer is frozen",
            Self::KillProducer => "the producer gets SIGKILL",
            Self::KillDatabase => "PostgreSQL gets SIGKILL",
            Self::FreezeDatabase => "PostgreSQL is frozen",
            Self::KillBroker => "RabbitMQ gets SIGKILL",
            Self::FreezeBroker => "RabbitMQ is frozen",
            Self::MemoryAlarm => "RabbitMQ raises its memory alarm",
            Self::DiskAlarm => "RabbitMQ raises its disk alarm",
            Self::CutDatabase => "all links to PostgreSQL are cut",
            Self::CutBroker => "all links to RabbitMQ are cut",
            Self::SwallowBroker => "links to RabbitMQ swallow everything",
            Self::Delay => "all links are slow",
            Self::Slice => "all links deliver byte by byte",
        }
    }
}

/// What can be broken.
pub(super) struct Stage {
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) cast: Cast,
    pub(super) to_database: FaultProxy,
    pub(super) to_broker: FaultProxy,
}

impl Stage {
    /// Breaks one thing and leaves it broken for a while.
    pub(super) async fn suffer(&mut self, fault: Fault, random: &mut Rng) -> anyhow::Result<()> {
        let relay = random.usize(0..self.cast.relays.len());
        let consumer = random.usize(0..self.cast.consumers.len());
        match fault {
            Fault::KillRelay => self.cast.relays.swap_remove(relay).1.kill9().await?,
            Fault::StopRelay => self.cast.relays.swap_remove(relay).1.stop().await?,
            Fault::KillConsumer => self.cast.consumers.swap_remove(consumer).1.kill9().await?,
            Fault::FreezeRelay => freeze(&self.cast.relays[relay].1).await?,
            Fault::FreezeConsumer => freeze(&self.cast.consumers[consumer].1).await?,
            Fault::KillProducer => {
                self.cast.producer.kill()?;
                sleep(SHORT).await;
            }
            Fault::KillDatabase | Fault::FreezeDatabase | Fault::CutDatabase => {
                self.break_database(fault).await?;
            }
            Fault::KillBroker
            | Fault::FreezeBroker
            | Fault::MemoryAlarm
            | Fault::DiskAlarm
            | Fault::CutBroker
            | Fault::SwallowBroker => self.break_broker(fault).await?,
            Fault::Delay | Fault::Slice => self.burden(fault).await,
        }
        Ok(())
    }

    async fn break_database(&self, fault: Fault) -> anyhow::Result<()> {
        let postgres = self.sandbox.postgres();
        if fault == Fault::KillDatabase {
            postgres.kill9().await?;
        } else if fault == Fault::FreezeDatabase {
            postgres.pause()?;
            sleep(SHORT).await;
            postgres.resume()?;
        } else {
            self.to_database.cut();
            sleep(SHORT).await;
        }
        Ok(())
    }

    async fn break_broker(&self, fault: Fault) -> anyhow::Result<()> {
        let rabbitmq = self.sandbox.rabbitmq();
        match fault {
            Fault::KillBroker => rabbitmq.kill9().await?,
            Fault::FreezeBroker => {
                rabbitmq.pause()?;
                sleep(FROZEN).await;
                rabbitmq.resume()?;
            }
            Fault::MemoryAlarm => {
                self.sandbox.memory_alarm(true).await?;
                sleep(SHORT).await;
                self.sandbox.memory_alarm(false).await?;
            }
            Fault::DiskAlarm => {
                self.sandbox.disk_alarm(true).await?;
                sleep(SHORT).await;
                self.sandbox.disk_alarm(false).await?;
            }
            Fault::SwallowBroker => {
                self.to_broker.blackhole();
                sleep(FROZEN).await;
            }
            Fault::CutBroker
            | Fault::KillRelay
            | Fault::FreezeRelay
            | Fault::StopRelay
            | Fault::KillConsumer
            | Fault::FreezeConsumer
            | Fault::KillProducer
            | Fault::KillDatabase
            | Fault::FreezeDatabase
            | Fault::CutDatabase
            | Fault::Delay
            | Fault::Slice => {
                self.to_broker.cut();
                sleep(SHORT).await;
            }
        }
        Ok(())
    }

    async fn burden(&self, fault: Fault) {
        for proxy in [&self.to_database, &self.to_broker] {
            if fault == Fault::Delay {
                proxy.delay(Duration::from_millis(50));
            } else {
                proxy.slice(1);
            }
        }
        sleep(FROZEN).await;
    }

    /// Puts servers, links and processes right again.
    pub(super) async fn heal(&mut self, story: &Story) -> anyhow::Result<()> {
        self.to_database.restore();
        self.to_broker.restore();
        tokio::try_join!(
            self.sandbox.postgres().start(),
            self.sandbox.rabbitmq().start()
        )?;
        let sandbox = Arc::clone(&self.sandbox);
        if self.cast.producer.has_ended()? {
            self.cast.renew_producer(&sandbox).await?;
        }
        bury(&mut self.cast.relays, story)?;
        bury(&mut self.cast.consumers, story)?;
        for (pool, wanted) in [("shared", 2), ("summit", 1)] {
            while count(&self.cast.relays, pool) < wanted {
                self.cast.add_relay(&sandbox, pool).await?;
            }
            if count(&self.cast.consumers, pool) == 0 {
                self.cast.add_consumer(&sandbox, pool).await?;
            }
        }
        Ok(())
    }
}

async fn freeze(program: &Program) -> anyhow::Result<()> {
    program.pause()?;
    sleep(FROZEN).await;
    program.resume()?;
    Ok(())
}

/// Forgets processes that ended by themselves, as what supervises them would start them again.
fn bury(programs: &mut Vec<(&'static str, Program)>, story: &Story) -> anyhow::Result<()> {
    let mut at = 0;
    while at < programs.len() {
        if programs[at].1.has_ended()? {
            let (pool, _) = programs.swap_remove(at);
            story.say(&format!(
                "a process of {pool} had ended by itself and is started again"
            ));
        } else {
            at += 1;
        }
    }
    Ok(())
}

fn count(programs: &[(&'static str, Program)], pool: &str) -> usize {
    programs.iter().filter(|(of, _)| *of == pool).count()
}
