//! Tables of figures, and how they become files.

use super::{Format, system};
use crate::failure::Failure;
use metaroce_sim::scenario::columns::{Columns, Values};
use std::path::Path;

/// Writes a table into a folder.
///
/// # Errors
/// If it cannot be written.
pub fn write(table: &Columns, folder: &Path, format: Format) -> Result<(), Failure> {
    match format {
        Format::Csv => {
            let path = folder.join(table.name).with_extension("csv");
            write_csv(table, &path).map_err(|error| system(&path, error))
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => {
            let path = folder.join(table.name).with_extension("parquet");
            super::parquet::write(table, &path).map_err(|error| system(&path, error))
        }
    }
}

fn write_csv(table: &Columns, path: &Path) -> csv::Result<()> {
    let mut writer = csv::Writer::from_path(path)?;
    writer.write_record(table.columns.iter().map(|(name, _)| name))?;
    for row in 0..table.rows() {
        for (_, values) in &table.columns {
            let text = match values {
                Values::Integers(values) => shown(values[row]),
                Values::Numbers(values) => shown(values[row]),
                Values::Texts(values) => values[row].clone(),
                Values::Booleans(values) => values[row].to_string(),
            };
            writer.write_field(text)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(writer.flush()?)
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
