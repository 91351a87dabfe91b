//! Collectives on binary trees: an all-reduce goes up to the root and down again, a broadcast down only.
//!
//! One tree leaves half of the ranks, its leaves, sending half as much as the others. Two trees, each for half of the buffer, in
//! which the leaves of the one are the inner nodes of the other, use all ranks alike: P. Sanders, J. Speck and J. L. Träff, "Two-tree
//! algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35 (2009). NCCL's trees are of this kind.

use core::ops::Range;

use super::schedule::{Schedule, Step, chunks, part};
use crate::workload::program::After;

/// A tree of all ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// By rank.
    parent: Vec<Option<u32>>,
    /// Each rank before its parent.
    upwards: Vec<u32>,
}

impl Tree {
    /// The in-order binary tree: odd ranks are its leaves, and the number of zeros at the end of a rank's binary form is its
    /// height. Rank 0, which has one child, is its root.
    #[must_use]
    pub fn binary(ranks: u32) -> Self {
        let parent = (0..ranks).map(|rank| {
            let lowest = rank & rank.wrapping_neg();
            let above = (rank ^ lowest) | lowest.checked_shl(1).unwrap_or(0);
            match rank {
                0 => None,
                // The inner node that would stand above is not there: the next one down the same side takes its place.
                _ if above >= ranks || above == 0 => Some(rank ^ lowest),
                _ => Some(above),
            }
        });
        let mut upwards: Vec<u32> = (0..ranks).collect();
        upwards.sort_by_key(|&rank| if rank == 0 { 32 } else { rank.trailing_zeros() });
        Self {
            parent: parent.collect(),
            upwards,
        }
    }

    /// The same tree with other ranks in its places, `name` being a permutation.
    #[must_use]
    pub fn renamed(&self, name: impl Fn(u32) -> u32) -> Self {
        let mut parent = vec![None; self.parent.len()];
        for (rank, up) in (0..).zip(&self.parent) {
            parent[name(rank) as usize] = up.map(&name);
        }
        Self {
            parent,
            upwards: self.upwards.iter().map(|&rank| name(rank)).collect(),
        }
    }

    /// The binary tree and the one that complements it: mirrored if the number of ranks is even, else shifted by one. No rank has
    /// children in both, but (of an odd number) one at most.
    #[must_use]
    pub fn double(ranks: u32) -> [Self; 2] {
        let first = Self::binary(ranks);
        let second = first.renamed(|rank| {
            if ranks.is_multiple_of(2) {
                ranks - 1 - rank
            } else {
                (rank + 1) % ranks
            }
        });
        [first, second]
    }
}

/// Which ways the data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ways {
    /// Sums go up, then results down.
    UpAndDown,
    /// The root's data goes down.
    Down,
}

/// The schedule on several trees (each for its part of the buffer, with a flow of its own), in chunks that go on one by one.
#[must_use]
pub fn trees(trees: &[Tree], ways: Ways, ranks: u32, size: u64, chunk: u64) -> Schedule {
    let mut schedule = Schedule::new(ranks);
    let mut shares: Vec<_> = (0..)
        .zip(trees)
        .map(|(index, tree)| {
            let share = part(&(0..size), u64::from(index), trees.len() as u64);
            (tree, index, chunks(share, chunk))
        })
        .collect();
    // The trees take turns, for a host posts what can start at once in the order of the tasks.
    loop {
        let mut idle = true;
        for (tree, flow, chunks) in &mut shares {
            if let Some(bytes) = chunks.next() {
                one_chunk(&mut schedule, tree, ways, *flow, &bytes);
                idle = false;
            }
        }
        if idle {
            return schedule;
        }
    }
}

fn one_chunk(schedule: &mut Schedule, tree: &Tree, ways: Ways, flow: u32, bytes: &Range<u64>) {
    let mut came: Vec<Vec<After>> = vec![Vec::new(); schedule.ranks() as usize];
    let step = |from, to, reduce| Step {
        from,
        to,
        bytes: bytes.clone(),
        reduce,
        flow,
    };
    if ways == Ways::UpAndDown {
        for &rank in &tree.upwards {
            let children = core::mem::take(&mut came[rank as usize]);
            match tree.parent[rank as usize] {
                Some(parent) => {
                    let id = schedule.send(step(rank, parent, true), &children);
                    came[parent as usize].push(After::Done(id));
                }
                None => came[rank as usize] = schedule.join(rank, &children),
            }
        }
    }
    for &rank in tree.upwards.iter().rev() {
        if let Some(parent) = tree.parent[rank as usize] {
            let id = schedule.send(step(parent, rank, false), &came[parent as usize]);
            came[rank as usize].push(After::Done(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(tree: &Tree) -> Vec<usize> {
        let mut children = vec![0; tree.parent.len()];
        for parent in tree.parent.iter().flatten() {
            children[*parent as usize] += 1;
        }
        children
    }

    #[test]
    fn trees_are_binary_and_shallow() {
        for ranks in 1..=130_u32 {
            for tree in Tree::double(ranks) {
                assert!(children(&tree).iter().all(|&count| count <= 2));
                assert_eq!(tree.parent.iter().filter(|up| up.is_none()).count(), 1);
                let mut place = vec![0; ranks as usize];
                for (index, &rank) in tree.upwards.iter().enumerate() {
                    place[rank as usize] = index;
                }
                for (rank, up) in tree.parent.iter().enumerate() {
                    assert!(up.is_none_or(|up| place[up as usize] > place[rank]));
                }
                for mut rank in 0..ranks {
                    let mut depth = 0;
                    while let Some(up) = tree.parent[rank as usize] {
                        (rank, depth) = (up, depth + 1);
                    }
                    assert!(depth <= ranks.ilog2() + 1, "{ranks}");
                }
            }
        }
    }

    #[test]
    fn a_leaf_of_one_tree_is_inside_the_other() {
        for ranks in 2..=130_u32 {
            let [first, second] = Tree::double(ranks).map(|tree| children(&tree));
            let both = first
                .iter()
                .zip(&second)
                .filter(|&(&a, &b)| a > 0 && b > 0)
                .count();
            assert!(both <= usize::from(ranks % 2 == 1), "{ranks}: {both}");
        }
    }
}
