//! The firmware on QEMU's riscv32 machine `virt`: a virtio-net device is its port, the serial line carries defmt.
//!
//! Its address is 192.0.2.2, or 192.0.2.x for a device with the Ethernet address 52:54:00:..:x.
#![no_std]
#![no_main]

mod machine;
mod port;

use core::net::Ipv4Addr;

use embassy_executor::{Executor, Spawner};
use metaroce_firmware::device::Settings;
use metaroce_firmware::figures::Figures;
use metaroce_firmware::task::{Gauge, Storage, serve};
use metaroce_riscv::{clock::Clock, report, stack};
use static_cell::{ConstStaticCell, StaticCell};

use machine::Machine;
use port::Port;

static EXECUTOR: StaticCell<Executor> = StaticCell::new();
static STORAGE: ConstStaticCell<Storage> = ConstStaticCell::new(Storage::new());
static FIGURES: Figures = Figures::new();
embassy_time_driver::time_driver_impl!(static CLOCK: Clock<Machine> = Clock::new());
metaroce_riscv::console!(machine::put);

#[riscv_rt::entry]
fn main() -> ! {
    // SAFETY: nothing runs yet but this, and there is no heap.
    unsafe { stack::paint() };
    machine::start();
    EXECUTOR
        .init(Executor::new())
        .run(|spawner| match (board(spawner), reports()) {
            (Ok(board), Ok(reports)) => {
                spawner.spawn(board);
                spawner.spawn(reports);
            }
            _ => machine::fail(),
        })
}

#[embassy_executor::task]
async fn board(spawner: Spawner) {
    let Some(port) = Port::find() else {
        defmt::error!("no virtio-net device");
        machine::fail();
    };
    let mac = port.mac();
    let settings = Settings {
        mac,
        address: Ipv4Addr::new(192, 0, 2, mac[5]),
        mbps: 100,
        secret: machine::secret(mac),
        peer: None,
    };
    let gauge = Gauge {
        cycles: machine::cycles,
        figures: &FIGURES,
    };
    if let Err(error) = serve(spawner, port, &settings, STORAGE.take(), gauge).await {
        defmt::error!("{:?}", error);
    }
    machine::fail();
}

#[embassy_executor::task]
async fn reports() -> ! {
    report::run(&FIGURES).await
}

#[riscv_rt::core_interrupt(riscv::interrupt::Interrupt::MachineTimer)]
fn alarm() {
    CLOCK.on_alarm();
}

#[riscv_rt::core_interrupt(riscv::interrupt::Interrupt::MachineExternal)]
fn external() {
    machine::on_external(port::on_interrupt);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    defmt::error!("panic");
    machine::fail()
}
