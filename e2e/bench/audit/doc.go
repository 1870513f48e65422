// Package audit counts what one client asked of API servers, from their audit logs: values in,
// values out.
//
//	requests ──▶ By(user) ──▶ In(namespace) ──▶ Tally: verb and resource -> count, failed
//	                     └──▶ Between(times) ──▶ Unexpected: what isn't upkeep
//
// Upkeep is what a client does by the clock, whatever happens to Jobs: it renews Leases, probes API
// servers, and opens watches again that their API server has ended.
package audit
