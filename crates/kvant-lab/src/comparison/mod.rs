//! The rules by which two sides are compared: order, intervals, assertions. Numbers alone, without
//! plans and files.
//!
//! - [`order`]: which side is measured when.
//! - [`intervals`]: what the measured ratios show.
//! - [`assertion`]: what a user claims of a ratio.
//! - [`moments`]: when an experiment makes what happen; [`shifts`]: what that changed.
//! - [`speed_ups`]: in which order an experiment speeds a stage up.
//!
//! The independent unit is the *block*: four attempts in the order A B B A or B A A B, each of a
//! newly started process. Not the request and not a window of time: requests of a window share a
//! queue, windows of an attempt share a process with its addresses and its data, and attempts share
//! the speed of the machine, which drifts. A linear drift cancels within a block. The order of each
//! block is drawn, so that under equal sides the sign of a block's difference is a coin toss
//! whatever else the machine does: this is all that the intervals rest on.

pub mod assertion;
pub mod intervals;
pub mod moments;
pub mod order;
pub mod shifts;
pub mod speed_ups;
