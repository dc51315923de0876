//! Rows of any statement, as JSON values under their columns' names.

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tokio_postgres::types::Type;
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

use crate::failure::Failure;

/// Columns in their order, and rows.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Map<String, Value>>,
}

impl Listing {
    pub(crate) fn read(statement: &Statement, rows: &[Row]) -> Result<Self, Failure> {
        let columns = statement.columns().iter();
        Ok(Self {
            columns: columns.map(|column| column.name().to_owned()).collect(),
            rows: rows.iter().map(object).collect::<Result<_, _>>()?,
        })
    }

    /// One row of these values, in this order.
    pub(crate) fn one<const N: usize>(cells: [(&str, Value); N]) -> Self {
        let cells = cells.map(|(column, value)| (column.to_owned(), value));
        Self {
            columns: cells.iter().map(|(column, _)| column.clone()).collect(),
            rows: vec![Map::from_iter(cells)],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows as one JSON array.
    pub(crate) fn to_json(&self) -> Value {
        Value::Array(self.rows.iter().cloned().map(Value::Object).collect())
    }

    /// The only row as an object; null if there is none.
    pub(crate) fn first(&self) -> Value {
        self.rows
            .first()
            .map_or(Value::Null, |row| Value::Object(row.clone()))
    }
}

fn object(row: &Row) -> Result<Map<String, Value>, tokio_postgres::Error> {
    let mut object = Map::new();
    for (index, column) in row.columns().iter().enumerate() {
        object.insert(column.name().to_owned(), cell(row, index, column.type_())?);
    }
    Ok(object)
}

fn cell(row: &Row, index: usize, kind: &Type) -> Result<Value, tokio_postgres::Error> {
    Ok(match *kind {
        Type::BOOL => json!(row.try_get::<_, Option<bool>>(index)?),
        Type::INT2 => json!(row.try_get::<_, Option<i16>>(index)?),
        Type::INT4 => json!(row.try_get::<_, Option<i32>>(index)?),
        Type::INT8 => json!(row.try_get::<_, Option<i64>>(index)?),
        Type::FLOAT8 => json!(row.try_get::<_, Option<f64>>(index)?),
        Type::JSON | Type::JSONB => row
            .try_get::<_, Option<Value>>(index)?
            .unwrap_or(Value::Null),
        Type::UUID => json!(
            row.try_get::<_, Option<Uuid>>(index)?
                .map(|id| id.to_string())
        ),
        Type::BYTEA => json!(row.try_get::<_, Option<Vec<u8>>>(index)?.map(hex::encode)),
        Type::TEXT_ARRAY => json!(row.try_get::<_, Option<Vec<String>>>(index)?),
        Type::DATE => json!(row.try_get::<_, Option<NaiveDate>>(index)?),
        Type::TIMESTAMPTZ => {
            let time: Option<DateTime<Utc>> = row.try_get(index)?;
            json!(time.map(|time| time.to_rfc3339_opts(SecondsFormat::Micros, true)))
        }
        _ => json!(row.try_get::<_, Option<String>>(index)?),
    })
}
