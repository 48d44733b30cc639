// Figures of a range of a time line, from the columns of its heat map.

export const RANGE_PERCENTILES = [0.5, 0.9, 0.99, 0.999];

// The columns that overlap a range; a range's ends are those of columns.
export function columnsOf(line, fromUs, toUs) {
  return line.columns.filter((column) => column.start_ns < toUs * 1e3 && column.end_ns > fromUs * 1e3);
}

export function snapped(line, fromUs, toUs) {
  const columns = columnsOf(line, fromUs, toUs);
  return columns.length === 0 ? null : { fromUs: columns[0].start_ns / 1e3, toUs: columns.at(-1).end_ns / 1e3 };
}

// Requests, errors, time, percentiles. A percentile is interpolated within its row.
export function figuresOf(line, columns) {
  const rows = new Float64Array(Math.max(0, line.rows_ns.length - 1));
  const sum = (field) => columns.reduce((total, column) => total + column[field], 0);
  for (const { counts } of columns) {
    for (const [row, count] of counts) {
      rows[row] += count;
    }
  }
  const count = rows.reduce((total, each) => total + each, 0);
  const percentile = (part) => {
    let below = 0;
    for (let row = 0; row < rows.length; row += 1) {
      if (rows[row] > 0 && below + rows[row] >= part * count) {
        const [low, high] = [line.rows_ns[row], line.rows_ns[row + 1]];
        return low * (high / low) ** ((part * count - below) / rows[row]);
      }
      below += rows[row];
    }
    return null;
  };
  return {
    seconds: columns.reduce((total, column) => total + (column.end_ns - column.start_ns) / 1e9, 0),
    completed: sum('completed'),
    errors: sum('errors'),
    percentiles: RANGE_PERCENTILES.map(percentile),
    maxNs: columns.reduce((most, column) => Math.max(most, column.max_ns), 0),
  };
}
