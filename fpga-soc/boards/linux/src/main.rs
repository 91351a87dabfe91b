//! The firmware as a Linux program: its port is a TAP device.
//!
//! `metaroce-board-linux TAP ADDRESS [PEER]`: serves at ADDRESS (in a network of 24 bits) until it is ended; with PEER it goes there instead.

use std::net::Ipv4Addr;
use std::process::exit;

use embassy_executor::{Executor, Spawner};
use embassy_net_tuntap::TunTapDevice;
use metaroce_firmware::device::Settings;
use metaroce_firmware::figures::Figures;
use metaroce_firmware::task::{Gauge, Storage, serve};
use static_cell::{ConstStaticCell, StaticCell};

static EXECUTOR: StaticCell<Executor> = StaticCell::new();
static STORAGE: ConstStaticCell<Storage> = ConstStaticCell::new(Storage::new());
static FIGURES: Figures = Figures::new();
static LOGGER: Logger = Logger;

/// What the firmware says goes to standard error.
struct Logger;

impl log::Log for Logger {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("metaroce")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{} {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}

/// What the command line says.
struct Arguments {
    tap: String,
    address: Ipv4Addr,
    peer: Option<Ipv4Addr>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let usage = "usage: metaroce-board-linux TAP ADDRESS [PEER]";
        let address = |word: String| {
            word.parse::<Ipv4Addr>()
                .map_err(|_| format!("{word:?} is no IPv4 address; {usage}"))
        };
        let (Some(tap), Some(own)) = (words.next(), words.next()) else {
            return Err(usage.to_owned());
        };
        Ok(Self {
            tap,
            address: address(own)?,
            peer: words.next().map(address).transpose()?,
        })
    }
}

fn main() {
    // The only error is that there is a logger already, and there is none.
    let _ = log::set_logger(&LOGGER);
    log::set_max_level(log::LevelFilter::Info);
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => fail(&error),
    };
    let executor = EXECUTOR.init(Executor::new());
    executor.run(|spawner| match board(spawner, arguments) {
        Ok(token) => spawner.spawn(token),
        Err(error) => fail(&format!("{error:?}")),
    });
}

#[embassy_executor::task]
async fn board(spawner: Spawner, arguments: Arguments) {
    let Arguments { tap, address, peer } = arguments;
    let mut port =
        TunTapDevice::new(&tap).unwrap_or_else(|error| fail(&format!("TAP device {tap}: {error}")));
    let [.., last] = address.octets();
    let settings = Settings {
        mac: [0x02, 0, 0, 0, 0, last],
        address,
        mbps: 1_000,
        secret: secret().unwrap_or_else(|error| fail(&format!("/dev/urandom: {error}"))),
        peer,
    };
    port.set_hardware_address(settings.mac);
    // What a packet costs is a question for boards.
    let gauge = Gauge {
        cycles: || 0,
        figures: &FIGURES,
    };
    match serve(spawner, port, &settings, STORAGE.take(), gauge).await {
        Ok(()) => {}
        Err(error) => fail(&format!("{error:?}")),
    }
}

fn secret() -> std::io::Result<[u8; 32]> {
    use std::io::Read;
    let mut secret = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret)
}

fn fail(error: &str) -> ! {
    eprintln!("metaroce-board-linux: {error}");
    exit(1)
}
