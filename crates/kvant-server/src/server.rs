//! The server as its owner sees it.

use crate::config::ServerConfig;
use crate::lifecycle::Lifecycle;
use crate::log::Log;
use crate::stores::Store;
use kvant_base::MemoryBudget;
use kvant_engine::RecoveryProgress;
use kvant_env::Env;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A running server. It listens at once and answers `503` of type `recovering` until it is given its store.
pub struct Server {
    lifecycle: Arc<Lifecycle>,
}

impl Server {
    /// Binds the listeners and starts the selectors.
    ///
    /// # Errors
    /// An address cannot be bound, a thread cannot be started, or the settings contradict each other.
    pub fn start(
        _config: ServerConfig,
        _env: Env,
        _memory: Arc<MemoryBudget>,
        _log: Arc<dyn Log>,
    ) -> io::Result<Server> {
        Ok(Server { lifecycle: Arc::default() })
    }

    /// The address of the data plane.
    pub fn local_addr(&self) -> SocketAddr {
        unimplemented!()
    }

    /// The address of the operator API, where it has a listener of its own.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        unimplemented!()
    }

    /// Where whoever opens the store reports how far recovery is.
    pub fn recovery_progress(&self) -> Arc<RecoveryProgress> {
        Arc::clone(&self.lifecycle.progress)
    }

    /// Gives the server its store: from now on entities are served. A second store is ignored.
    pub fn set_ready(&self, store: Arc<dyn Store>) {
        self.lifecycle.set_ready(store);
    }

    /// Tells users why the store cannot be opened. The server goes on answering `503`.
    pub fn set_failed(&self, reason: String) {
        self.lifecycle.set_failed(reason);
    }

    /// Stops accepting, closes idle connections, lets requests in flight finish for at most `grace`, then closes the store.
    ///
    /// # Errors
    /// What closing the store failed with.
    pub fn stop(self, _grace: Duration) -> kvant_base::Result<()> {
        unimplemented!()
    }
}
