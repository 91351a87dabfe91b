//! Random numbers of the kinds that workloads need, equal on every platform.

use crate::random::Stream;
use crate::time::Time;

/// A number from above 0 to 1, in steps of 2^-53.
pub fn unit(stream: &mut Stream) -> f64 {
    ((stream.bits() >> 11) + 1) as f64 / 9_007_199_254_740_992.0
}

/// A multiple of an exponential distribution's mean: waiting times of a Poisson process, by inversion.
pub fn exponential(stream: &mut Stream) -> f64 {
    // `libm` computes in software: the same bits everywhere, unlike the logarithm of a platform.
    -libm::log(unit(stream))
}

/// The time until the next event of a Poisson process.
pub fn waiting_time(stream: &mut Stream, mean_ps: f64) -> Time {
    Time::from_ps((exponential(stream) * mean_ps) as u64)
}

/// Puts items into a random order (Fisher and Yates).
pub fn shuffle<T>(stream: &mut Stream, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, stream.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn waiting_times_are_exponential_and_the_same_everywhere() {
        let mut stream = Stream::new(1, Purpose::Traffic, 0);
        let first = exponential(&mut stream);
        let (mut sum, mut squares, mut long) = (first, first * first, 0);
        for _ in 1..100_000 {
            let x = exponential(&mut stream);
            assert!(x >= 0.0 && x.is_finite());
            sum += x;
            squares += x * x;
            long += u32::from(x > 1.0);
        }
        let mean = sum / 1e5;
        let variance = squares / 1e5 - mean * mean;
        // Mean 1, variance 1, and e^-1 of them longer than the mean.
        assert!((0.99..1.01).contains(&mean), "{mean}");
        assert!((0.96..1.04).contains(&variance), "{variance}");
        assert!((36_300..37_300).contains(&long), "{long}");
        assert_eq!(
            Stream::new(1, Purpose::Traffic, 0).bits() >> 11,
            (unit(&mut Stream::new(1, Purpose::Traffic, 0)) * 9_007_199_254_740_992.0) as u64 - 1
        );
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut stream = Stream::new(2, Purpose::Placement, 0);
        let mut seen = [0; 27];
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            shuffle(&mut stream, &mut items);
            seen[items[0] * 9 + items[1] * 3 + items[2]] += 1;
        }
        let orders: Vec<_> = seen.into_iter().filter(|&count| count > 0).collect();
        assert_eq!(orders.len(), 6);
        assert!(orders.iter().all(|count| (9_600..10_400).contains(count)));
    }
}
