//! Tables as Parquet files.

use metaroce_sim::scenario::columns::{Columns, Values};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Writes a table to a file of this name.
pub fn write(table: &Columns, path: &Path) -> Result<()> {
    let fields = table
        .columns
        .iter()
        .map(|(name, values)| field(name, values))
        .collect::<Result<_>>()?;
    let schema = Type::group_type_builder(table.name)
        .with_fields(fields)
        .build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .build();
    let file = File::create(path)?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, values) in &table.columns {
        let Some(mut column) = group.next_column()? else {
            break;
        };
        match values {
            Values::Integers(values) => {
                // The file's integers have a sign; no figure needs the last bit.
                let present: Vec<i64> = values.iter().flatten().map(|&v| v as i64).collect();
                let typed = column.typed::<Int64Type>();
                typed.write_batch(&present, Some(&levels(values)), None)?;
            }
            Values::Numbers(values) => {
                let present: Vec<f64> = values.iter().flatten().copied().collect();
                let typed = column.typed::<DoubleType>();
                typed.write_batch(&present, Some(&levels(values)), None)?;
            }
            Values::Texts(values) => {
                let texts: Vec<ByteArray> = values
                    .iter()
                    .map(|text| ByteArray::from(text.as_str()))
                    .collect();
                let typed = column.typed::<ByteArrayType>();
                typed.write_batch(&texts, None, None)?;
            }
            Values::Booleans(values) => {
                column.typed::<BoolType>().write_batch(values, None, None)?;
            }
        }
        column.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn field(name: &str, values: &Values) -> Result<Arc<Type>> {
    let (physical, repetition) = match values {
        Values::Integers(_) => (Physical::INT64, Repetition::OPTIONAL),
        Values::Numbers(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
        Values::Texts(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
        Values::Booleans(_) => (Physical::BOOLEAN, Repetition::REQUIRED),
    };
    let logical = matches!(values, Values::Texts(_)).then_some(LogicalType::String);
    let field = Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

/// Which values there are.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|v| i16::from(v.is_some())).collect()
}
