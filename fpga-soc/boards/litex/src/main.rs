//! The firmware on a LiteX system on a chip: LiteEth is its port, the serial line carries defmt.
//!
//! Its switches say the last byte of its address, 192.0.2.x, and above it that of the device to go to, if there is one.
#![no_std]
#![no_main]

mod port;
mod soc;

use core::net::Ipv4Addr;

use embassy_executor::{Executor, Spawner};
use metaroce_firmware::device::Settings;
use metaroce_firmware::figures::Figures;
use metaroce_firmware::task::{Gauge, Storage, serve};
use metaroce_riscv::{clock::Clock, report, stack};
use static_cell::{ConstStaticCell, StaticCell};

use port::Port;
use soc::Soc;

static EXECUTOR: StaticCell<Executor> = StaticCell::new();
static STORAGE: ConstStaticCell<Storage> = ConstStaticCell::new(Storage::new());
static FIGURES: Figures = Figures::new();
embassy_time_driver::time_driver_impl!(static CLOCK: Clock<Soc> = Clock::new());
metaroce_riscv::console!(soc::put);

#[riscv_rt::entry]
fn main() -> ! {
    // SAFETY: nothing runs yet but this, and there is no heap.
    unsafe { stack::paint() };
    soc::start();
    EXECUTOR
        .init(Executor::new())
        .run(|spawner| match (board(spawner), reports()) {
            (Ok(board), Ok(reports)) => {
                spawner.spawn(board);
                spawner.spawn(reports);
            }
            _ => soc::stop(),
        })
}

#[embassy_executor::task]
async fn board(spawner: Spawner) {
    let [own, peer] = soc::straps();
    let address = |last| Ipv4Addr::new(192, 0, 2, last);
    let mac = [0x02, 0, 0, 0, 0, own];
    let settings = Settings {
        mac,
        address: address(own),
        mbps: 1,
        secret: soc::secret(own),
        peer: (peer != 0).then_some(address(peer)),
    };
    let gauge = Gauge {
        cycles: soc::cycles,
        figures: &FIGURES,
    };
    let port = Port::new(mac);
    if let Err(error) = serve(spawner, port, &settings, STORAGE.take(), gauge).await {
        defmt::error!("{:?}", error);
    }
    soc::stop();
}

#[embassy_executor::task]
async fn reports() -> ! {
    report::run(&FIGURES).await
}

#[riscv_rt::core_interrupt(riscv::interrupt::Interrupt::MachineExternal)]
fn external() {
    if soc::is_pending(soc::TIMER0_INTERRUPT) {
        soc::acknowledge_alarm();
        CLOCK.on_alarm();
    }
    if soc::is_pending(soc::ETHMAC_INTERRUPT) {
        port::on_interrupt();
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    defmt::error!("panic");
    soc::stop()
}
