//! Kinds of requests, which have histograms of their own: a method and a class of paths, or a name
//! that a script gives.

use kvant_base::lock::NamedMutex;
use std::sync::Arc;

/// Most kinds in a run. Further ones share the last, [`OTHER`].
pub const OPS_MAX: usize = 32;
/// The name of the last kind.
pub const OTHER: &str = "(other)";

/// A kind of requests: an index below [`OPS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(u8);

impl OpId {
    /// Its index in tables by kind.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The names of all kinds in a run. Clones share one table. Callers keep the ids: a lookup takes a
/// lock.
#[derive(Clone, Debug)]
pub struct OpNames(Arc<NamedMutex<Vec<String>>>);

impl Default for OpNames {
    fn default() -> OpNames {
        OpNames(Arc::new(NamedMutex::new("op_names", Vec::new())))
    }
}

impl OpNames {
    /// The kind named `name`, created on first use.
    pub fn intern(&self, name: &str) -> OpId {
        let mut names = self.0.lock();
        if let Some(index) = names.iter().position(|known| known == name) {
            return OpId(index as u8);
        }
        let name = if names.len() == OPS_MAX - 1 { OTHER } else { name };
        if names.len() < OPS_MAX {
            names.push(name.to_owned());
        }
        OpId((names.len() - 1) as u8)
    }

    /// The names, by [`OpId::index`].
    pub fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}
