//! Tables that any library of data frames takes as they are: the Arrow PyCapsule interface.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::iterator::ArrayIter;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    ArrayAccessor, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator,
    StringArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, ffi::FFI_ArrowSchema};
use metaroce_sim::scenario::columns::{Columns, Values};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;

/// A table of figures. Give it to `polars.DataFrame`, `pyarrow.table` or `pandas.DataFrame.from_arrow`: they take it without a copy.
#[pyclass(frozen, module = "metaroce")]
pub struct Table {
    name: &'static str,
    batch: RecordBatch,
}

impl Table {
    pub fn new(columns: &Columns) -> Result<Self, ArrowError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
        for (name, values) in &columns.columns {
            let (kind, nullable, array): (DataType, bool, ArrayRef) = match values {
                Values::Integers(values) => {
                    let array = UInt64Array::from_iter(values.iter().copied());
                    (DataType::UInt64, true, Arc::new(array))
                }
                Values::Numbers(values) => {
                    let array = Float64Array::from_iter(values.iter().copied());
                    (DataType::Float64, true, Arc::new(array))
                }
                Values::Texts(values) => {
                    let array = StringArray::from_iter_values(values);
                    (DataType::Utf8, false, Arc::new(array))
                }
                Values::Booleans(values) => {
                    let array = BooleanArray::from(values.clone());
                    (DataType::Boolean, false, Arc::new(array))
                }
            };
            fields.push(Field::new(name, kind, nullable));
            arrays.push(array);
        }
        Ok(Self {
            name: columns.name,
            batch: RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?,
        })
    }
}

/// The values of an array, none where there is none.
fn collected<A: ArrayAccessor>(array: A) -> Vec<Option<A::Item>> {
    ArrayIter::new(array).collect()
}

fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// The table's name.
    #[getter]
    const fn name(&self) -> &str {
        self.name
    }

    /// Its columns' names.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        let fields = self.batch.schema_ref().fields().iter();
        fields.map(|field| field.name().as_str()).collect()
    }

    /// How many rows it has.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The values of a column, as a list.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let Some(column) = self.batch.column_by_name(name) else {
            let known = self.column_names().join(", ");
            let message = format!("{name}: {} has the columns {known}", self.name);
            return Err(PyKeyError::new_err(message));
        };
        let list = match column.data_type() {
            DataType::UInt64 => PyList::new(py, collected(column.as_primitive::<UInt64Type>()))?,
            DataType::Float64 => PyList::new(py, collected(column.as_primitive::<Float64Type>()))?,
            DataType::Utf8 => PyList::new(py, collected(column.as_string::<i32>()))?,
            _ => PyList::new(py, collected(column.as_boolean()))?,
        };
        Ok(list.unbind().into_any())
    }

    fn __repr__(&self) -> String {
        format!(
            "Table({:?}, {} rows: {})",
            self.name,
            self.batch.num_rows(),
            self.column_names().join(", ")
        )
    }

    /// The schema, for whoever speaks the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The table as a stream, likewise. Its one schema is given whatever was asked for, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = [Ok(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
