//! Searches for the highest rate that is sustained.
