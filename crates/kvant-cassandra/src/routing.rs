//! Which node coordinates a request.
//!
//! The driver's own policy proposes nodes that store the record, by chance, then others; for the
//! records of several buckets, any nodes. Of two proposals this one takes the node with fewer
//! requests in flight, and passes over nodes that have no room. Silent nodes are asked only where
//! all proposals are silent.
//!
//! Invariant: a request is sent to no node that has no room. An empty plan means that none has.

use crate::figures::{Figures, Load};
use scylla::cluster::{ClusterState, NodeRef};
use scylla::policies::load_balancing::{FallbackPlan, LoadBalancingPolicy, RoutingInfo};
use scylla::routing::Shard;
use std::iter;
use std::sync::Arc;

type Target<'a> = (NodeRef<'a>, Option<Shard>);

#[derive(Debug)]
pub(crate) struct Routing {
    proposals: Arc<dyn LoadBalancingPolicy>,
    figures: Arc<Figures>,
}

impl Routing {
    pub(crate) fn new(
        proposals: Arc<dyn LoadBalancingPolicy>,
        figures: Arc<Figures>,
    ) -> Arc<Routing> {
        Arc::new(Routing { proposals, figures })
    }

    fn load(&self, node: NodeRef<'_>, now_ns: u64) -> Load {
        let known = self.figures.known(node.address.ip());
        known.map_or_else(Load::default, |known| known.load(now_ns))
    }

    /// Whether nodes that store the record have no room, and none has: others would only send the
    /// request to these.
    fn are_replicas_full(
        &self,
        request: &RoutingInfo<'_>,
        cluster: &ClusterState,
        now_ns: u64,
    ) -> bool {
        let (Some(token), Some(table)) = (request.token, request.table) else { return false };
        let replicas = cluster.get_token_endpoints(table.ks_name(), table.table_name(), token);
        let connected = replicas.iter().map(|(node, _)| node).filter(|node| node.is_connected());
        let mut full = connected.map(|node| self.load(node, now_ns).is_full).peekable();
        full.peek().is_some() && full.all(|is_full| is_full)
    }
}

impl LoadBalancingPolicy for Routing {
    fn pick<'a>(
        &'a self,
        request: &'a RoutingInfo<'_>,
        cluster: &'a ClusterState,
    ) -> Option<Target<'a>> {
        let now_ns = self.figures.now_ns();
        let propose = || {
            let target = self.proposals.pick(request, cluster)?;
            Some((self.load(target.0, now_ns), target))
        };
        let (one, other) = (propose()?, propose()?);
        let (best, worst) = if other.0 < one.0 { (other, one) } else { (one, other) };
        if worst.0.is_full || worst.0.is_silent {
            self.figures.note_skip(worst.1.0.address.ip());
        }
        // Otherwise all nodes are looked at.
        (!best.0.is_full && !best.0.is_silent).then_some(best.1)
    }

    fn fallback<'a>(
        &'a self,
        request: &'a RoutingInfo<'_>,
        cluster: &'a ClusterState,
    ) -> FallbackPlan<'a> {
        let now_ns = self.figures.now_ns();
        if self.are_replicas_full(request, cluster, now_ns) {
            return Box::new(iter::empty());
        }
        let proposals = self.proposals.fallback(request, cluster);
        let with_load = proposals.map(|target| (self.load(target.0, now_ns), target));
        let with_room = with_load.filter(|(load, _)| !load.is_full);
        let (silent, answering): (Vec<_>, Vec<_>) = with_room.partition(|(load, _)| load.is_silent);
        Box::new(answering.into_iter().chain(silent).map(|(_, target)| target))
    }

    fn name(&self) -> String {
        format!("{}, by requests in flight", self.proposals.name())
    }
}
