// Package measure times what happens to Jobs, as a client of the clusters sees it, and what
// processes use.
//
//	watch of a cluster's Jobs ──▶ Timeline: Job -> Stage -> when first seen ──▶ Latencies ──▶ Quantiles
//	/proc ──▶ Usage
//
// A Stage orders what can be seen of a Job. As stages only rise, the lag of one cluster behind
// another is the difference between the times at which the same stage of a Job was first seen in
// both, even if one of them skips stages.
package measure
