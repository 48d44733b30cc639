//! A macro for enums with a name per variant.

/// Declares a fieldless enum with `ALL`, its variants in declaration order, and `name()`, the text
/// of a variant. Attributes and visibility are kept. `name()` takes the enum by value, so derive
/// `Clone` and `Copy`.
///
/// ```
/// kvant_base::named_enum! {
///     /// The result of a copy.
///     #[derive(Clone, Copy)]
///     pub enum CopyResult {
///         /// All bytes were copied.
///         Done = "done",
///         /// No bytes were copied.
///         Failed = "failed",
///     }
/// }
/// assert_eq!(CopyResult::ALL.map(CopyResult::name), ["done", "failed"]);
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
            /// All variants in declaration order.
            $visibility const ALL: [$Name; [$($text),+].len()] = [$($Name::$Variant),+];

            /// The variant's name in output.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $($Name::$Variant => $text,)+
                }
            }
        }
    };
}
