// Package loss holds the tests of what becomes of Jobs whose worker is lost, drained, or not theirs
// any more, on real API servers: docs/explanation/losing-a-worker.md says what is promised.
package loss
