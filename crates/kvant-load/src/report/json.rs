//! An outcome as JSON.
