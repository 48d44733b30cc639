//! The plans that come with the program.

/// A plan that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name: that of the file without `.toml`.
    pub name: &'static str,
    /// What it says of itself in one line.
    pub title: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All shipped plans.
pub fn shipped() -> &'static [Shipped] {
    &[]
}
