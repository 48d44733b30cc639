//! First-in, first-out lists of connections with removal from the middle, without allocation.
//!
//! Invariant: a connection is in at most one list, and is removed from the list that it was pushed
//! to.

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Links(Vec<Link>);

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

#[derive(Debug)]
pub(super) struct Queue {
    first: u32,
    last: u32,
    count: usize,
}

impl Links {
    pub(super) fn new(connection_count: usize) -> Links {
        Links(vec![Link { before: NONE, after: NONE }; connection_count])
    }
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue { first: NONE, last: NONE, count: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        (self.first != NONE).then_some(self.first as usize)
    }

    pub(super) fn after(&self, links: &Links, index: usize) -> Option<usize> {
        let after = links.0[index].after;
        (after != NONE).then_some(after as usize)
    }

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
