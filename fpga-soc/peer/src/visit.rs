//! What is done with the device's memory, and how it is checked.
//!
//! Each connection has a part of the region to itself and knows every byte that must be in it; the region's last word all of them add to.

use std::fmt::Display;

use metaroce_soft::core::service::{HELLO_BYTES, Hello, SERVICE};
use metaroce_soft::core::{
    Access, CloseMode, Completion, ConnectionConfig, Operation, ReceiveRequest, Status, WorkFlags,
    WorkRequest,
};
use metaroce_soft::{Buffer, Connection, MemoryRegion, Nic};

use crate::arguments::Arguments;

/// Writes of a round: one to each of so many slots of the part.
const WRITES: usize = 3;
/// What each visit adds in a round.
const ADDEND: u64 = 5;
/// Work request numbers: of reads, of additions, of the hello. Writes have those below.
const READ: u64 = 100;
const ADD: u64 = 101;
const HELLO: u64 = 102;

/// What was done, all connections together.
#[derive(Default, Debug)]
pub struct Tally {
    /// Bytes written.
    pub written: u64,
    /// Bytes read.
    pub read: u64,
    /// Additions.
    pub additions: u64,
    /// Packets sent again by this side.
    pub retransmissions: u64,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// A connection and what it knows.
struct Visit {
    connection: Connection,
    window: Hello,
    /// Where this visit's part begins in the region.
    start: usize,
    /// What must be in the part: `None` where nothing is known yet.
    model: Vec<Option<u8>>,
    /// Written from; read to, with 8 bytes behind for the word before an addition.
    source: (Buffer, MemoryRegion),
    landing: (Buffer, MemoryRegion),
    random: Random,
    round: u32,
    /// Operations of the round that are open.
    open: u32,
    reading: bool,
    /// The counter as it was before this visit's latest addition.
    latest: Option<u64>,
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// Visits, over all connections at once.
///
/// # Errors
/// What went wrong, or which byte is not what it must be.
pub fn run(nic: &Nic, arguments: &Arguments) -> Result<Tally, String> {
    let mut visits = Vec::new();
    for number in 0..arguments.connections {
        visits.push(Visit::open(nic, arguments, number)?);
    }
    let mut tally = Tally::default();
    let before = visits[0].counter(nic, arguments)?;
    for visit in &mut visits {
        visit.write(&mut tally)?;
    }
    while visits.iter().any(|visit| visit.round < arguments.rounds) {
        let completion = wait(nic, arguments)?;
        let visit = visits
            .iter_mut()
            .find(|visit| visit.connection.handle() == completion.connection)
            .ok_or("a completion of nobody")?;
        visit.completed(&completion, arguments.rounds, &mut tally)?;
    }
    let additions = u64::from(arguments.rounds) * arguments.connections as u64;
    let after = visits[0].counter(nic, arguments)?;
    let expected = before.wrapping_add(additions * ADDEND);
    if after != expected {
        return Err(format!("the counter is {after}, not {expected}"));
    }
    for visit in &visits {
        visit.connection.close(CloseMode::Drain).map_err(text)?;
        visit
            .connection
            .wait_closed(arguments.timeout)
            .map_err(text)?;
        tally.retransmissions += visit
            .connection
            .statistics()
            .map_or(0, |statistics| statistics.retransmissions);
    }
    Ok(tally)
}

fn wait(nic: &Nic, arguments: &Arguments) -> Result<Completion, String> {
    let completion = nic.completions().wait(Some(arguments.timeout));
    let completion = completion.ok_or_else(|| {
        let endpoint = nic.statistics().endpoint;
        format!(
            "nothing completes for {:?}: {endpoint:?}",
            arguments.timeout
        )
    })?;
    if completion.status != Status::Success {
        return Err(format!("{completion:?}"));
    }
    Ok(completion)
}

impl Visit {
    fn open(nic: &Nic, arguments: &Arguments, number: usize) -> Result<Self, String> {
        let patience = metaroce_soft::core::Duration::from_nanos(
            u64::try_from(arguments.timeout.as_nanos()).unwrap_or(u64::MAX),
        );
        let config = ConnectionConfig {
            paths: 4,
            run: 1,
            service: SERVICE,
            failure_timeout: patience,
            ..nic.connection_config()
        };
        let connection = nic
            .connect(&[arguments.device], config, arguments.timeout)
            .map_err(text)?;
        let buffer = Buffer::new(HELLO_BYTES).map_err(text)?;
        let region = nic.register(&buffer, Access::LOCAL_WRITE).map_err(text)?;
        let receive = ReceiveRequest {
            id: HELLO,
            local: region.slice(0, HELLO_BYTES as u32),
        };
        connection.post_receive(0, &receive).map_err(text)?;
        wait(nic, arguments)?;
        let mut bytes = [0; HELLO_BYTES];
        buffer.read_at(0, &mut bytes).map_err(text)?;
        let window = Hello::decode(&bytes).ok_or("the device's first message is no hello")?;
        // The last word is everybody's.
        let part = (window.length as usize - 8) / arguments.connections / 8 * 8;
        let source = Buffer::new(part).map_err(text)?;
        let landing = Buffer::new(part + 8).map_err(text)?;
        let regions = (
            nic.register(&source, Access::LOCAL_READ).map_err(text)?,
            nic.register(&landing, Access::LOCAL_WRITE).map_err(text)?,
        );
        Ok(Self {
            connection,
            window,
            start: number * part,
            model: vec![None; part],
            source: (source, regions.0),
            landing: (landing, regions.1),
            random: Random(arguments.seed ^ (number as u64) << 32),
            round: 0,
            open: 0,
            reading: false,
            latest: None,
        })
    }

    /// Writes to a random place in each slot of the part.
    fn write(&mut self, tally: &mut Tally) -> Result<(), String> {
        let slot = self.model.len() / WRITES;
        for number in 0..WRITES {
            let length = 1 + self.random.below(slot);
            let at = number * slot + self.random.below(slot - length + 1);
            let bytes: Vec<u8> = (0..length).map(|_| self.random.next() as u8).collect();
            self.source.0.write_at(at, &bytes).map_err(text)?;
            for (known, byte) in self.model[at..].iter_mut().zip(&bytes) {
                *known = Some(*byte);
            }
            let local = self.source.1.slice(at as u64, length as u32);
            let remote = self.window.at((self.start + at) as u64);
            self.connection
                .write(0, number as u64, local, remote)
                .map_err(text)?;
            tally.written += length as u64;
        }
        self.open = WRITES as u32;
        self.reading = false;
        Ok(())
    }

    /// Reads the whole part and adds.
    fn read(&mut self) -> Result<(), String> {
        let part = self.model.len();
        let local = self.landing.1.slice(0, part as u32);
        let remote = self.window.at(self.start as u64);
        self.connection.read(0, READ, local, remote).map_err(text)?;
        self.add(ADDEND)?;
        self.open = 2;
        self.reading = true;
        Ok(())
    }

    fn add(&self, add: u64) -> Result<(), String> {
        let operation = Operation::FetchAdd {
            local: self.landing.1.slice(self.model.len() as u64, 8),
            remote: self.window.at(self.window.length - 8),
            add,
        };
        let work = WorkRequest {
            id: ADD,
            operation,
            flags: WorkFlags::default(),
        };
        self.connection.post(0, &work).map_err(text)
    }

    /// The counter, by adding nothing.
    fn counter(&self, nic: &Nic, arguments: &Arguments) -> Result<u64, String> {
        self.add(0)?;
        wait(nic, arguments)?;
        self.word()
    }

    fn word(&self) -> Result<u64, String> {
        self.landing.0.load_u64(self.model.len()).map_err(text)
    }

    fn completed(
        &mut self,
        completion: &Completion,
        rounds: u32,
        tally: &mut Tally,
    ) -> Result<(), String> {
        match completion.id {
            READ => {
                self.check()?;
                tally.read += self.model.len() as u64;
            }
            ADD => {
                let word = self.word()?;
                let grew = self.latest.is_none_or(|latest| word >= latest + ADDEND);
                if !grew || word % ADDEND != self.latest.unwrap_or(word) % ADDEND {
                    return Err(format!("the counter was {:?} and is {word}", self.latest));
                }
                self.latest = Some(word);
                tally.additions += 1;
            }
            _ => {}
        }
        self.open -= 1;
        match (self.open, self.reading) {
            (0, false) => self.read(),
            (0, true) => {
                self.round += 1;
                if self.round < rounds {
                    self.write(tally)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Every byte of the part that was ever written.
    fn check(&self) -> Result<(), String> {
        let bytes = self.landing.0.to_vec(0, self.model.len()).map_err(text)?;
        for (at, (got, known)) in bytes.iter().zip(&self.model).enumerate() {
            if known.is_some_and(|known| known != *got) {
                return Err(format!(
                    "round {}: byte {} is {got:#04x}, not {known:x?}",
                    self.round,
                    self.start + at
                ));
            }
        }
        Ok(())
    }
}
