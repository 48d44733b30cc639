//! What is shown while a run goes on.
