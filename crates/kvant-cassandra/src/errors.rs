//! Errors of the driver, by what the caller must do.

use kvant_base::{Error, ErrorKind};
use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, ExecutionError,
    MetadataError, NewSessionError, PrepareError, RequestAttemptError, SchemaAgreementError,
};

const NOTHING_DONE: &str = "nothing was done: ";
const MAYBE: &str = "another attempt may have been done: a write may be there or not";

/// How Cassandra begins to say that it cannot check a password now.
const CANNOT_AUTHENTICATE: &str = "Unable to perform authentication";

/// How Cassandra begins to say that a request is longer than `native_transport_max_frame_size`.
const TOO_LONG: &str = "Request is too big";

/// Kind of a request, for the message: only a write may be there without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Read,
    Write,
}

/// Why a request failed. A write `may_be_done` if another attempt than the failed one may have
/// done it.
pub(crate) fn of_request(error: &ExecutionError, asked: Asked, may_be_done: bool) -> Error {
    let error = of_last_attempt(error);
    let says_nothing_done = matches!(error.kind(), ErrorKind::Away | ErrorKind::Overloaded);
    match error.kind() {
        ErrorKind::NoAnswer if asked == Asked::Write => {
            let what = format!("{}; a write may be there or not", error.message());
            Error::new(ErrorKind::NoAnswer, what)
        }
        _ if !may_be_done => error,
        ErrorKind::TooFewReplicas { .. } => {
            let what = format!("{}; {MAYBE}", error.message());
            Error::new(error.kind(), what.replacen(NOTHING_DONE, "", 1))
        }
        _ if says_nothing_done => {
            Error::new(ErrorKind::NoAnswer, format!("{}; {MAYBE}", error.message()))
        }
        _ => Error::new(error.kind(), format!("{}; {MAYBE}", error.message())),
    }
}

fn of_last_attempt(error: &ExecutionError) -> Error {
    let what = error.to_string();
    match error {
        ExecutionError::LastAttemptError(attempt) => of_attempt(attempt),
        ExecutionError::RequestTimeout(_) => {
            Error::new(ErrorKind::NoAnswer, format!("no node has answered in time: {what}"))
        }
        ExecutionError::PrepareError(error) => of_prepare(error),
        ExecutionError::SchemaAgreementError(
            SchemaAgreementError::PrepareError(PrepareError::AllAttemptsFailed { first_attempt })
            | SchemaAgreementError::RequestError(first_attempt),
        ) => of_attempt(first_attempt),
        ExecutionError::ConnectionPoolError(_)
        | ExecutionError::EmptyPlan
        | ExecutionError::SchemaAgreementError(_)
        | ExecutionError::MetadataError(_) => Error::new(ErrorKind::Away, what),
        _ => Error::new(ErrorKind::Io, what),
    }
}

fn of_prepare(error: &PrepareError) -> Error {
    match error {
        PrepareError::ConnectionPoolError(_) => Error::new(ErrorKind::Away, error.to_string()),
        PrepareError::AllAttemptsFailed { first_attempt } => of_attempt(first_attempt),
        _ => Error::new(ErrorKind::Io, error.to_string()),
    }
}

fn of_attempt(error: &RequestAttemptError) -> Error {
    let RequestAttemptError::DbError(error, message) = error else {
        return match error {
            RequestAttemptError::BrokenConnectionError(_) => Error::new(
                ErrorKind::NoAnswer,
                format!("the connection with a node broke: {error}"),
            ),
            RequestAttemptError::UnableToAllocStreamId => {
                Error::new(ErrorKind::Overloaded, "the connections with the node are full")
            }
            _ => Error::new(ErrorKind::Io, error.to_string()),
        };
    };
    let count = |count: &i32| u32::try_from(*count).unwrap_or(0);
    let too_few = |required: &i32, received: &i32, what: String| {
        let (required, received) = (count(required), count(received));
        Error::new(ErrorKind::TooFewReplicas { required, received }, what)
    };
    match error {
        DbError::Unavailable { required, alive, .. } => too_few(
            required,
            alive,
            format!(
                "{NOTHING_DONE}{required} nodes have to answer, {alive} of those that store the \
                 record are up"
            ),
        ),
        DbError::ReadTimeout { required, received, .. }
        | DbError::ReadFailure { required, received, .. } => too_few(
            required,
            received,
            format!("{received} nodes have answered, {required} had to"),
        ),
        DbError::WriteTimeout { required, received, .. }
        | DbError::WriteFailure { required, received, .. } => too_few(
            required,
            received,
            format!(
                "{received} nodes have the write, {required} had to: it may be read, or appear \
                 later; repeat it to be sure"
            ),
        ),
        DbError::Overloaded => Error::new(ErrorKind::Overloaded, format!("{error}: {message}")),
        DbError::Invalid if message.starts_with(TOO_LONG) => Error::invalid(format!(
            "the node takes no record this long (its native_transport_max_frame_size): {message}"
        )),
        DbError::IsBootstrapping => Error::new(ErrorKind::Away, format!("{error}: {message}")),
        _ => Error::new(ErrorKind::Io, format!("{error}: {message}")),
    }
}

/// Why there is no session. [`ErrorKind::Away`]: trying again may help.
pub(crate) fn of_connecting(error: &NewSessionError) -> Error {
    let pool = match error {
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(pool)) => pool,
        NewSessionError::FailedToResolveAnyHostname(names) => {
            let names = names.join(", ");
            return Error::new(ErrorKind::Away, format!("no address is known for {names}"));
        }
        NewSessionError::EmptyKnownNodesList | NewSessionError::IllegalConfig(_) => {
            return Error::invalid(error.to_string());
        }
        _ => return Error::new(ErrorKind::Away, error.to_string()),
    };
    match pool {
        ConnectionPoolError::Broken { last_connection_error }
            if is_refused(last_connection_error) =>
        {
            Error::invalid(format!("the cluster refuses the connection: {last_connection_error}"))
        }
        ConnectionPoolError::Broken { last_connection_error } => {
            Error::new(ErrorKind::Away, last_connection_error.to_string())
        }
        _ => Error::new(ErrorKind::Away, pool.to_string()),
    }
}

/// Whether the cluster does not accept this user.
fn is_refused(error: &ConnectionError) -> bool {
    let ConnectionError::ConnectionSetupRequestError(setup) = error else { return false };
    match &setup.error {
        ConnectionSetupRequestErrorKind::DbError(error, message) => refuses_user(error, message),
        ConnectionSetupRequestErrorKind::MissingAuthentication => true,
        _ => false,
    }
}

fn refuses_user(error: &DbError, message: &str) -> bool {
    match error {
        // Cassandra has the same code for a wrong password and for nodes with the passwords that
        // do not answer.
        DbError::AuthenticationError => !message.starts_with(CANNOT_AUTHENTICATE),
        DbError::Unauthorized => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
