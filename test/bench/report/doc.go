// Package report turns what was measured into a table, the targets that were met or missed, and a
// plot. It is pure. Start at [Text], with a [Result] for each cell.
package report
