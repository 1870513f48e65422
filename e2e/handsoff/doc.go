// Package handsoff tests on real API servers that what others do in a worker, or with a Job, breaks
// no promise: policies, deployers, backups and janitors that know nothing of Jobferry.
package handsoff
