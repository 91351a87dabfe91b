//! The table of connections: found by id in one step, linked by who has something to do.

use crate::connection::Connection;
use crate::rate::allocator::{Share, ShareTable};
use crate::schedule::{Linked, Links};

/// A place for a connection in an endpoint's table.
#[derive(Debug)]
pub struct ConnectionEntry<
    const PATHS: usize,
    const SLOTS: usize,
    const STREAMS: usize,
    const MESSAGES: usize,
> {
    pub(super) connection: Option<Connection<PATHS, SLOTS, STREAMS, MESSAGES>>,
    pub(super) links: Links,
    pub(super) share: Share,
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// An empty place.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            connection: None,
            links: Links::IDLE,
            share: Share::IDLE,
        }
    }
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize> Default
    for ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>
{
    fn default() -> Self {
        Self::new()
    }
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize> Linked
    for ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>
{
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The table as the allocator sees it.
pub(super) struct Shares<
    'a,
    const PATHS: usize,
    const SLOTS: usize,
    const STREAMS: usize,
    const MESSAGES: usize,
> {
    pub entries: &'a mut [ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>],
    pub nobody: Share,
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize> ShareTable
    for Shares<'_, PATHS, SLOTS, STREAMS, MESSAGES>
{
    #[inline(always)]
    fn share(&mut self, sender: u16) -> &mut Share {
        match self.entries.get_mut(usize::from(sender)) {
            Some(entry) => &mut entry.share,
            None => &mut self.nobody,
        }
    }
}

/// The connection with an id, and its place in the table.
#[inline(always)]
// spec: MR-SEC-004, MR-CLOSE-009
pub(super) fn find<const P: usize, const S: usize, const T: usize, const M: usize>(
    entries: &mut [ConnectionEntry<P, S, T, M>],
    mask: u32,
    id: u32,
) -> Option<(u16, &mut Connection<P, S, T, M>)> {
    let index = (id & mask) as u16;
    connection_at(entries, index)
        .filter(|record| record.local_id == id)
        .map(|record| (index, record))
}

#[inline(always)]
pub(super) fn connection_at<const P: usize, const S: usize, const T: usize, const M: usize>(
    entries: &mut [ConnectionEntry<P, S, T, M>],
    index: u16,
) -> Option<&mut Connection<P, S, T, M>> {
    entries.get_mut(usize::from(index))?.connection.as_mut()
}
