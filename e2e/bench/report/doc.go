// Package report shows what was measured as a table, next to the goals and to what it's compared
// with: values in, text out.
package report
