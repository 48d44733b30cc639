//! The universal scalability law (Neil Gunther, "A Simple Capacity Model of Massively Parallel
//! Transaction Systems", 1993): `X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))`.
//!
//! `N / X(N)` is linear in `1 / lambda`, `sigma / lambda` and `kappa / lambda`, so that the law is
//! fitted by linear least squares. Rows are weighted by `X(N) / N`: the relative error counts, not
//! the absolute one. Coefficients are not negative; one that would be is left out.

use crate::model::{Text, Usl};

/// Points that three coefficients and a test of the fit need.
const POINTS_MIN: usize = 4;
/// A worse fit is no law.
const R2_MIN: f64 = 0.9;

/// Fits concurrency and throughput. The text says how well, or why there is no law.
pub(super) fn fit(points: &[(f64, f64)]) -> (Option<Usl>, Text) {
    if points.len() < POINTS_MIN {
        return (None, too_few(points.len()));
    }
    // Which of contention and coherency are in the model, from the richest.
    let models = [[true, true], [true, false], [false, true], [false, false]];
    let law = models.into_iter().find_map(|model| solve(points, model));
    match law {
        Some(law) if law.r2 >= R2_MIN => {
            let peak = law.peak.map_or(String::new(), |peak| format!("{peak:.0}"));
            let text = if peak.is_empty() {
                Text {
                    en: format!("The law fits (R2 = {:.3}) and has no peak.", law.r2),
                    ru: format!("Закон подходит (R2 = {:.3}), пика нет.", law.r2),
                }
            } else {
                Text {
                    en: format!(
                        "The law fits (R2 = {:.3}); throughput peaks at {peak} connections.",
                        law.r2
                    ),
                    ru: format!(
                        "Закон подходит (R2 = {:.3}); максимум при {peak} соединениях.",
                        law.r2
                    ),
                }
            };
            (Some(law), text)
        }
        law => {
            let r2 = law.map_or(0.0, |law| law.r2);
            let text = Text {
                en: format!("The law does not fit: R2 = {r2:.3}, less than {R2_MIN}."),
                ru: format!("Закон не подходит: R2 = {r2:.3}, меньше {R2_MIN}."),
            };
            (None, text)
        }
    }
}

fn too_few(count: usize) -> Text {
    Text {
        en: format!(
            "The universal scalability law needs closed loops with at least {POINTS_MIN} numbers \
             of connections; there are {count}."
        ),
        ru: format!(
            "Универсальному закону масштабируемости нужны замкнутые циклы хотя бы с {POINTS_MIN} \
             числами соединений; есть {count}."
        ),
    }
}

/// The least-squares solution with the terms that `model` selects; `None` if a coefficient is
/// negative or the points do not determine it.
fn solve(points: &[(f64, f64)], model: [bool; 2]) -> Option<Usl> {
    let row = |n: f64| {
        let terms = [(n - 1.0, model[0]), (n * (n - 1.0), model[1])];
        std::iter::once(1.0)
            .chain(terms.into_iter().filter(|(_, is_used)| *is_used).map(|(term, _)| term))
            .collect::<Vec<f64>>()
    };
    let size = row(1.0).len();
    // Normal equations, with the right side as the last column.
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for &(n, x) in points {
        let weight = (x / n).powi(2);
        let terms = row(n);
        for i in 0..size {
            for j in 0..size {
                matrix[i][j] += weight * terms[i] * terms[j];
            }
            matrix[i][size] += weight * terms[i] * n / x;
        }
    }
    let solution = eliminate(matrix)?;
    let mut rest = solution.iter().copied();
    let inverse = rest.next()?;
    let mut next = |is_used: bool| if is_used { rest.next() } else { Some(0.0) };
    let (sigma, kappa) = (next(model[0])? / inverse, next(model[1])? / inverse);
    if inverse <= 0.0 || sigma < 0.0 || kappa < 0.0 {
        return None;
    }
    let lambda = 1.0 / inverse;
    let model_of = |n: f64| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
    let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
    let squares =
        |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(|p| of(p).powi(2)).sum::<f64>();
    let total = squares(&|point| point.1 - mean);
    let residual = squares(&|point| point.1 - model_of(point.0));
    let r2 = if total > 0.0 { 1.0 - residual / total } else { 0.0 };
    let peak = (kappa > 0.0 && sigma < 1.0).then(|| ((1.0 - sigma) / kappa).sqrt());
    Some(Usl { lambda, sigma, kappa, r2, peak })
}

/// Solves linear equations by elimination with pivots; `None` if they are singular.
fn eliminate(mut matrix: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = matrix.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        let head = matrix[column].clone();
        if head[column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for (_, row) in matrix.iter_mut().enumerate().filter(|(index, _)| *index != column) {
            let factor = row[column] / head[column];
            row.iter_mut().zip(&head).for_each(|(cell, of_head)| *cell -= factor * of_head);
        }
    }
    Some((0..size).map(|i| matrix[i][size] / matrix[i][i]).collect())
}

#[cfg(test)]
mod tests;
