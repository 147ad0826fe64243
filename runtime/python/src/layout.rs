//! Values of the layout algebra.

use crate::errors;
use ptoc_driver::library::Report;
use ptoc_layout::picture::{Picture, TableStyle};
use ptoc_views::expression::Expressions;
use ptoc_views::layout::{describe, object};
use pyo3::prelude::*;
use std::sync::Arc;

/// Columns and rows of a table.
const STYLE: TableStyle = TableStyle { width: 100, rows: 32, color: false };

/// A value of the layout algebra: a table as text, and a picture in a notebook.
#[pyclass(module = "ptoc", frozen)]
pub struct Layout {
    value: String,
    table: String,
    json: String,
    /// What has no picture says why.
    svg: Result<String, Report>,
}

/// The value of an expression of the layout algebra, as `ptoc layout` has it: `"(4,8):(8,1)"`, `"complement((4):(2),
/// 16)"`.
#[pyfunction]
pub fn layout(py: Python<'_>, expression: &str) -> PyResult<Layout> {
    let made = crate::forks::detached(py, || evaluated(expression));
    made.map_err(|report| errors::raised(py, &report))
}

fn evaluated(text: &str) -> Result<Layout, Report> {
    let expressions = Expressions::default();
    let wrong = |e| {
        let (d, sources) = expressions.diagnostic(&e, text);
        Report::of(d, Arc::new(sources))
    };
    let value = expressions.evaluate(text).map_err(wrong)?;
    let svg = Picture::of(&expressions.cx, &value).map(|picture| picture.svg());
    Ok(Layout {
        value: value.to_string(),
        table: describe(&expressions.cx, &value, &STYLE),
        json: object(&expressions.cx, &value, text).to_string(),
        svg: svg.map_err(|e| wrong(ptoc_layout::ExprError::whole(e, text))),
    })
}

#[pymethods]
impl Layout {
    fn __str__(&self) -> String {
        self.value.clone()
    }

    fn __repr__(&self) -> String {
        self.table.trim_end().to_owned()
    }

    /// The picture; text where there is none.
    fn _repr_svg_(&self) -> Option<String> {
        self.svg.clone().ok()
    }

    /// As `ptoc layout --json` prints it.
    #[getter]
    fn json(&self) -> String {
        self.json.clone()
    }

    /// A picture.
    #[getter]
    fn svg(&self, py: Python<'_>) -> PyResult<String> {
        self.svg.clone().map_err(|report| errors::raised(py, &report))
    }
}
