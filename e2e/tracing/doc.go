// Package tracing tests the traces of Jobs on real API servers, with a collector in the test's
// process: one trace per Job, whoever manages it and wherever it runs.
package tracing
