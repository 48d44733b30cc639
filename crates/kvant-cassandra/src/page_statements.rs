//! The statements that read pages of buckets.

use kvant_base::Result;
use scylla::statement::prepared::PreparedStatement;

/// What a page has of its rows, behind the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    Key,
    KeyValue,
    KeyValueExpiry,
}

/// Pages with these columns, which begin at a key.
pub(crate) struct PageStatements {
    columns: Columns,
    /// Whether all keys are less than another one.
    has_end: bool,
    /// The page of one bucket.
    pub(crate) one: PreparedStatement,
    /// The pages of several.
    pub(crate) several: PreparedStatement,
}

impl PageStatements {
    /// All of them.
    ///
    /// # Errors
    /// Of `prepare`.
    pub(crate) async fn all(
        entity: &str,
        prepare: impl AsyncFn(String) -> Result<PreparedStatement>,
    ) -> Result<Vec<PageStatements>> {
        let mut statements = Vec::new();
        for (columns, names) in [
            (Columns::Key, "bucket, key"),
            (Columns::KeyValue, "bucket, key, value"),
            (Columns::KeyValueExpiry, "bucket, key, value, TTL(value)"),
        ] {
            for (has_end, end) in [(false, ""), (true, " AND key < ?")] {
                let text = |buckets, limit| {
                    let rows = format!("bucket {buckets} AND key >= ?{end} {limit} ?");
                    format!("SELECT {names} FROM {entity} WHERE {rows}")
                };
                let one = prepare(text("= ?", "LIMIT")).await?;
                let several = prepare(text("IN ?", "PER PARTITION LIMIT")).await?;
                statements.push(PageStatements { columns, has_end, one, several });
            }
        }
        Ok(statements)
    }

    pub(crate) fn find(all: &[PageStatements], columns: Columns, has_end: bool) -> &PageStatements {
        let is = |one: &&PageStatements| one.columns == columns && one.has_end == has_end;
        all.iter().find(is).expect("all of them are prepared")
    }
}
