//! Message sizes: fixed, or drawn from the distributions that papers use.

use serde::{Deserialize, Serialize};

use super::error::{WorkloadError, require};
use crate::random::Stream;

/// A distribution of sizes, at least 1 byte each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// Always so many bytes.
    Fixed(u64),
    /// From the first to the second, all equally likely.
    Uniform(u64, u64),
    /// Web search: M. Alizadeh et al., "Data center TCP (DCTCP)", SIGCOMM 2010, figure 4. Mean 1.6 MB.
    WebSearch,
    /// Data mining: A. Greenberg et al., "VL2", SIGCOMM 2009, figure 2. Half of the flows are one packet; mean 7.4 MB.
    DataMining,
    /// Facebook's Hadoop clusters: A. Roy et al., "Inside the social network's (datacenter) network", SIGCOMM 2015, figure 6.
    Hadoop,
    /// Facebook's cache followers, from the same figure.
    Cache,
    /// Reads and writes of a cloud's block storage: Alibaba, 2019, published with Y. Li et al., "HPCC", SIGCOMM 2019.
    Storage,
    /// Points (bytes, share of the sizes up to there in 1/10,000), both rising, the last share 10,000. Between two points all sizes
    /// are equally likely; up to the first all are its size.
    Points(Vec<(u64, u32)>),
}

/// Shares are counted in these.
const WHOLE: u32 = 10_000;

/// Where a table counts in packets, they carry this many bytes (pFabric, SIGCOMM 2013, section 5.1).
const PACKET: u64 = 1460;

// The tables by which these figures are commonly read: in packets from HKUST's TrafficGenerator (`conf/CDF_*.txt`, also in pFabric,
// PIAS and Homa), in bytes from HPCC's simulator (`traffic_gen/*.txt`).
const WEB_SEARCH: [(u64, u32); 11] = [
    (6, 1500),
    (13, 2000),
    (19, 3000),
    (33, 4000),
    (53, 5300),
    (133, 6000),
    (667, 7000),
    (1333, 8000),
    (3333, 9000),
    (6667, 9700),
    (20_000, 10_000),
];
const DATA_MINING: [(u64, u32); 8] = [
    (1, 5000),
    (2, 6000),
    (3, 7000),
    (7, 8000),
    (267, 9000),
    (2107, 9500),
    (66_667, 9900),
    (666_667, 10_000),
];
const CACHE: [(u64, u32); 11] = [
    (1, 3600),
    (2, 4000),
    (7, 4600),
    (13, 5000),
    (67, 6000),
    (133, 7000),
    (667, 7800),
    (1333, 8000),
    (2000, 9000),
    (2667, 9900),
    (33_333, 10_000),
];
const HADOOP: [(u64, u32); 20] = [
    (1, 0),
    (100, 100),
    (200, 200),
    (300, 500),
    (350, 1500),
    (400, 2000),
    (500, 3000),
    (600, 4000),
    (700, 5000),
    (1000, 6000),
    (2000, 6700),
    (7000, 7000),
    (30_000, 7200),
    (50_000, 8200),
    (80_000, 8700),
    (120_000, 9000),
    (300_000, 9500),
    (1_000_000, 9750),
    (2_000_000, 9900),
    (10_000_000, 10_000),
];
const STORAGE: [(u64, u32); 9] = [
    (1, 0),
    (4000, 2293),
    (8000, 6921),
    (16_000, 8061),
    (32_000, 9047),
    (64_000, 9353),
    (128_000, 9677),
    (256_000, 9753),
    (2_000_000, 10_000),
];

/// A checked distribution, ready to draw from.
#[derive(Clone, Debug)]
pub struct Sampler {
    points: Vec<(u64, u32)>,
}

impl Sizes {
    /// Checks the distribution.
    ///
    /// # Errors
    /// If sizes are 0, or points do not rise to the whole.
    pub fn sampler(&self) -> Result<Sampler, WorkloadError> {
        let packets = |table: &[(u64, u32)]| {
            table
                .iter()
                .map(|&(n, share)| (n * PACKET, share))
                .collect()
        };
        let points: Vec<(u64, u32)> = match self {
            &Self::Fixed(bytes) => vec![(bytes, WHOLE)],
            &Self::Uniform(low, high) => vec![(low, 0), (high, WHOLE)],
            Self::WebSearch => packets(&WEB_SEARCH),
            Self::DataMining => packets(&DATA_MINING),
            Self::Cache => packets(&CACHE),
            Self::Hadoop => HADOOP.to_vec(),
            Self::Storage => STORAGE.to_vec(),
            Self::Points(points) => points.clone(),
        };
        let describe = || format!("{points:?}");
        let last = points.last().map(|point| point.1);
        require(
            last == Some(WHOLE),
            "sizes",
            describe(),
            "points up to a share of 10000",
        )?;
        require(
            points.iter().all(|point| point.0 >= 1),
            "sizes",
            describe(),
            "at least 1 byte",
        )?;
        let rising = points
            .windows(2)
            .all(|two| two[0].0 <= two[1].0 && two[0].1 <= two[1].1);
        require(rising, "sizes", describe(), "points that rise")?;
        Ok(Sampler { points })
    }
}

impl Sampler {
    /// A size.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        // Finer than the shares, or the sizes between two points would be few.
        let at = stream.below(u64::from(WHOLE) << 32);
        let mut low = (self.points[0].0, 0);
        for &(bytes, share) in &self.points {
            let share = u64::from(share) << 32;
            if at < share {
                let span = u128::from(bytes - low.0) * u128::from(at - low.1);
                return low.0 + (span / u128::from(share - low.1)) as u64;
            }
            low = (bytes, share);
        }
        low.0
    }

    /// The mean, in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let mut low = (self.points[0].0, 0);
        let mut sum = 0.0;
        for &(bytes, share) in &self.points {
            sum += f64::from(share - low.1) * ((low.0 + bytes) as f64 / 2.0);
            low = (bytes, share);
        }
        sum / f64::from(WHOLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn mean(sizes: &Sizes) -> f64 {
        sizes.sampler().unwrap().mean()
    }

    #[test]
    fn means_are_the_published_ones() {
        // pFabric and PIAS state 1.6 MB and 7.4 MB.
        assert!(
            (1.55e6..1.70e6).contains(&mean(&Sizes::WebSearch)),
            "{}",
            mean(&Sizes::WebSearch)
        );
        assert!(
            (7.3e6..7.5e6).contains(&mean(&Sizes::DataMining)),
            "{}",
            mean(&Sizes::DataMining)
        );
        assert!((mean(&Sizes::Fixed(77)) - 77.0).abs() < 1e-9);
        assert!((mean(&Sizes::Uniform(10, 20)) - 15.0).abs() < 1e-9);
    }

    #[test]
    fn draws_follow_the_distribution() {
        for sizes in [
            Sizes::WebSearch,
            Sizes::DataMining,
            Sizes::Hadoop,
            Sizes::Cache,
            Sizes::Storage,
            Sizes::Uniform(5, 5000),
        ] {
            let sampler = sizes.sampler().unwrap();
            let mut stream = Stream::new(1, Purpose::Traffic, 9);
            let draws: Vec<_> = (0..200_000).map(|_| sampler.draw(&mut stream)).collect();
            for &(bytes, share) in &sampler.points {
                let below = draws.iter().filter(|&&size| size <= bytes).count() as f64 / 2e5;
                let share = f64::from(share) / 1e4;
                assert!(
                    (below - share).abs() < 0.005,
                    "{sizes:?} {bytes}: {below} {share}"
                );
            }
            let drawn = draws.iter().sum::<u64>() as f64 / 2e5;
            let error = drawn / sampler.mean() - 1.0;
            assert!(error.abs() < 0.05, "{sizes:?}: {drawn} {}", sampler.mean());
        }
    }

    #[test]
    fn points_that_make_no_distribution_are_refused() {
        for points in [
            vec![],
            vec![(0, 10_000)],
            vec![(5, 9_999)],
            vec![(5, 10_000), (4, 10_000)],
            vec![(5, 6_000), (6, 5_000), (7, 10_000)],
        ] {
            assert!(
                Sizes::Points(points.clone()).sampler().is_err(),
                "{points:?}"
            );
        }
        assert!(Sizes::Uniform(9, 8).sampler().is_err());
    }
}
