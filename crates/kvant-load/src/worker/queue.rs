//! Lists of connections that cost no allocation: a connection is in one list at most, and its
//! neighbours stand in a table.
//!
//! Invariant: an index is in the list that it was last pushed to, until it is removed from that
//! one.

const NONE: u32 = u32::MAX;

/// The neighbours of every connection.
#[derive(Debug)]
pub(super) struct Links(Vec<Link>);

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

/// A list of connections, first in, first out.
#[derive(Debug)]
pub(super) struct Queue {
    first: u32,
    last: u32,
    count: usize,
}

impl Links {
    /// Room for `count` connections, none of them in a list.
    pub(super) fn new(count: usize) -> Links {
        Links(vec![Link { before: NONE, after: NONE }; count])
    }
}

impl Queue {
    /// An empty list.
    pub(super) fn new() -> Queue {
        Queue { first: NONE, last: NONE, count: 0 }
    }

    /// How many are in it.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The one that has been in it longest.
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        (self.first != NONE).then_some(self.first as usize)
    }

    /// The one that came after `index`.
    pub(super) fn after(&self, links: &Links, index: usize) -> Option<usize> {
        let after = links.0[index].after;
        (after != NONE).then_some(after as usize)
    }

    /// Appends one that is in no list.
    #[inline]
    pub(super) fn push(&mut self, links: &mut Links, index: usize) {
        links.0[index] = Link { before: self.last, after: NONE };
        match self.last {
            NONE => self.first = index as u32,
            last => links.0[last as usize].after = index as u32,
        }
        self.last = index as u32;
        self.count += 1;
    }

    /// Takes one out that is in this list.
    #[inline]
    pub(super) fn remove(&mut self, links: &mut Links, index: usize) {
        let Link { before, after } = links.0[index];
        match before {
            NONE => self.first = after,
            before => links.0[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => links.0[after as usize].before = before,
        }
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests;
