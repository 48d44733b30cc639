//! The same request again and again.
