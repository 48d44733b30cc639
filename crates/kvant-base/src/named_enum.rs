//! A macro for enums with a name per variant.

/// Declares a fieldless enum with `ALL`, its variants in declaration order, `name()`, the text of a
/// variant, and `from_name()`. Attributes and visibility are kept. `name()` takes the enum by
/// value, so derive `Clone` and `Copy`.
///
/// ```
/// kvant_base::named_enum! {
///     /// The result of a copy.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum CopyResult {
///         /// All bytes were copied.
///         Done = "done",
///         /// No bytes were copied.
///         Failed = "failed",
///     }
/// }
/// assert_eq!(CopyResult::ALL.map(CopyResult::name), ["done", "failed"]);
/// assert_eq!(CopyResult::from_name("failed"), Some(CopyResult::Failed));
/// assert_eq!(CopyResult::from_name("other"), None);
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

            /// The variant with this name.
            #[inline]
            #[allow(dead_code, reason = "not every enum is parsed")]
            $visibility fn from_name(name: &str) -> Option<$Name> {
                $Name::ALL.into_iter().find(|variant| variant.name() == name)
            }
        }
    };
}
