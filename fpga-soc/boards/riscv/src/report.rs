//! Says what packets cost and how deep the stack has been, whenever more packets have come.

use embassy_time::{Duration, Timer};
use metaroce_firmware::figures::Figures;

use crate::stack;

/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(100);

/// Frames after which it is worth saying.
const FRAMES: u32 = 64;

/// Reports for ever: when there is a pause.
pub async fn run(figures: &Figures) -> ! {
    let (mut last, mut said) = (figures.snapshot(), 0u32);
    loop {
        Timer::after(PERIOD).await;
        let now = figures.snapshot();
        let is_pause = now == last;
        last = now;
        if is_pause && now.frames_in.wrapping_sub(said) >= FRAMES {
            said = now.frames_in;
            defmt::info!(
                "figures: {} frames in, {} cycles each; {} out, {} cycles each; stack {} B",
                now.frames_in,
                now.cycles_in / now.frames_in.max(1),
                now.frames_out,
                now.cycles_out / now.frames_out.max(1),
                stack::deepest()
            );
        }
    }
}
