//! A macro for enums whose variants have a name in output.

/// Declares an enum without fields, with `ALL`, its variants in the order of declaration, and
/// `name()`, the text of each. Attributes and visibility are passed on; write `#[derive(Clone,
/// Copy)]` on it, as `name()` takes it by value.
///
/// ```
/// kvant_base::named_enum! {
///     /// What happened.
///     #[derive(Clone, Copy)]
///     pub enum Outcome {
///         /// All of it.
///         Done = "done",
///         /// Nothing.
///         Failed = "failed",
///     }
/// }
/// assert_eq!(Outcome::ALL.map(Outcome::name), ["done", "failed"]);
/// ```
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $Name:ident {
            $($(#[$variant_attribute:meta])* $Variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $Name {
            $($(#[$variant_attribute])* $Variant,)+
        }

        impl $Name {
            /// All variants, in the order of declaration.
            $visibility const ALL: [$Name; [$($text),+].len()] = [$($Name::$Variant),+];

            /// Its name in output.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $($Name::$Variant => $text,)+
                }
            }
        }
    };
}
