//! Figures of many figures.

use serde::Serialize;

/// What a set of numbers is like.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Distribution {
    /// How many there are; all others are 0 if there are none.
    pub count: u64,
    /// The least.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// Half of them are not above it.
    pub p50: f64,
    /// 99 % are not above it.
    pub p99: f64,
    /// 99.9 % are not above it.
    pub p999: f64,
    /// The greatest.
    pub max: f64,
}

impl Distribution {
    /// Of these numbers, by nearest rank: each figure is one of them, but the mean.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Self::default();
        };
        let count = values.len();
        let rank = |per_mille: usize| values[(count * per_mille).div_ceil(1000).max(1) - 1];
        Self {
            count: count as u64,
            min,
            mean: values.iter().sum::<f64>() / count as f64,
            p50: rank(500),
            p99: rank(990),
            p999: rank(999),
            max,
        }
    }
}

/// Jain's index of fairness (Jain, Chiu and Hawe 1984): 1 if all are equal, 1/n if one has all; 1 of none.
#[must_use]
pub fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if squares == 0.0 {
        1.0
    } else {
        sum * sum / (values.len() as f64 * squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_textbook() {
        let all = Distribution::of((1..=1000).rev().map(f64::from).collect());
        assert_eq!(
            (all.p50, all.p99, all.p999, all.max),
            (500.0, 990.0, 999.0, 1000.0)
        );
        assert_eq!((all.min, all.mean, all.count), (1.0, 500.5, 1000));
        assert_eq!(Distribution::of(vec![7.0]).p999, 7.0);
        assert_eq!(Distribution::of(Vec::new()), Distribution::default());
    }

    #[test]
    fn fairness_is_between_one_in_n_and_one() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
    }
}
