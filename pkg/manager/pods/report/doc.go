// Package report is what the manager holds of the Pods of one worker's Jobs, so that the hub can
// show them.
//
//	Pod of a worker ──> Of: clean ──> pack ──> Slim ──(feed)──> Store ──> Get: Pod ──> Status
//
// A report has the status of a Pod, its completion index, and how often that has failed: nothing
// else that a worker says about a Pod reaches the hub. Of cleans it: no addresses, no text that a
// terminal obeys, nothing that the hub's API server would refuse. It's packed before the feed takes
// it in, so a worker's list takes no more memory than the Store does.
package report
