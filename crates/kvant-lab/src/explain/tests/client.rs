//! Latencies that a client saw, beside phases of which the server saw only a part.

use super::simulation::{self, MS, SECOND, Simulation};
use super::{assert_first, busy_event_loop, explain, part, row};
use crate::explain::evidence::{Evidence, Phase, Request};
use crate::explain::model::Cause;
use crate::explain::text;

/// The evidence of a simulation as a client sees it. `server_sees` makes of a request what the
/// server knows of it.
fn seen_by_client(simulation: &Simulation, server_sees: impl Fn(&mut Request)) -> Evidence {
    let requests = simulation.requests();
    let mut of_server = requests.clone();
    of_server.iter_mut().for_each(&server_sees);
    let view = |requests: &[Request]| {
        simulation::evidence_of(requests, simulation.length_ns, simulation.events.clone(), true)
    };
    let (mut client, server) = (view(&requests), view(&of_server));
    client.is_of_client = true;
    client.requests = server.requests;
    for (of_client, of_server) in client.windows.iter_mut().zip(&server.windows) {
        for (operation, of) in &mut of_client.operations {
            let of_server = of_server.operations.get(operation);
            of.phases_ns = of_server.and_then(|of| of.phases_ns);
            of.block_read_ns = of_server.map_or(0, |of| of.block_read_ns);
        }
    }
    client
}

#[test]
fn a_busy_event_loop_is_named_by_a_server_that_sees_a_part_of_the_waiting() {
    // The server begins to count with the turn that reads a request: half of the wait.
    let evidence = seen_by_client(&busy_event_loop(), |request| {
        let selector_ns = &mut request.phases_ns[Phase::Selector as usize];
        request.start_ns += *selector_ns - *selector_ns / 2;
        *selector_ns /= 2;
    });
    let explanation = explain(&evidence);
    for percent in [50.0, 90.0, 99.0] {
        assert_first(&explanation, "get", percent, &Cause::Queueing);
    }
}

#[test]
fn time_that_only_the_client_saw_is_unexplained() {
    // Responses of 50 ms in each second reach the client late, without an event. The server has
    // a short queue at all times, which must not be given what it did not cause.
    let simulation = Simulation {
        rate_per_s: 2_000,
        special: |request, _| {
            if request.start_ns % SECOND < 50 * MS {
                // What the server does not see comes last, and is taken off again below.
                request.phases_ns[Phase::Answer as usize] = 50 * MS;
            }
            request.phases_ns.swap(Phase::Selector as usize, Phase::Queue as usize);
        },
        ..Simulation::default()
    };
    let evidence = seen_by_client(&simulation, |request| {
        request.end_ns -= std::mem::take(&mut request.phases_ns[Phase::Answer as usize]);
    });
    let explanation = explain(&evidence);
    let row = row(&explanation, "get", 99.0);
    assert!(part(&row, &Cause::Unexplained) >= 0.95, "{}", text(&explanation));
}

#[test]
fn waiting_for_a_connection_is_queueing() {
    let simulation = busy_event_loop();
    let mut evidence = seen_by_client(&simulation, |request| {
        request.start_ns += std::mem::take(&mut request.phases_ns[Phase::Selector as usize]);
    });
    for request in &simulation.requests() {
        let at = (request.end_ns / evidence.windows[0].length_ns) as usize;
        let of = evidence.windows.get_mut(at).and_then(|of| of.operations.get_mut("get"));
        if let Some(of) = of {
            of.connection_wait_ns += request.phases_ns[Phase::Selector as usize];
        }
    }
    let explanation = explain(&evidence);
    for percent in [50.0, 90.0, 99.0] {
        assert_first(&explanation, "get", percent, &Cause::Queueing);
    }
}
