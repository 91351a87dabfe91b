//! The contexts or queue pairs of a host, found by number.

/// A table of indices, empty at first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory(Vec<u32>);

impl Directory {
    const NONE: u32 = u32::MAX;

    /// What is at a place.
    pub fn find(&self, place: usize) -> Option<usize> {
        let index = *self.0.get(place)?;
        (index != Self::NONE).then_some(index as usize)
    }

    /// Puts something there.
    pub fn set(&mut self, place: usize, index: usize) {
        if self.0.len() <= place {
            self.0.resize(place + 1, Self::NONE);
        }
        self.0[place] = index as u32;
    }
}
