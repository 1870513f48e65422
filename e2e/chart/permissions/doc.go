// Package permissions says why each right that the charts give to Jobferry's own programs is
// needed: one table, which the documentation is made from, and which tests hold against the charts
// and against what the programs do.
//
//	markers in the code ──make generate──▶ config/*/role.yaml ──▶ chart, kustomize
//	                                              ║ equal
//	Table ────────────────────────────────────────╝
//	  ├─▶ docs/reference/rbac.md
//	  └─▶ the audit log of a run: every right is used, or its row says why no run shows it
//
// # Words
//
//   - A part is a role of its own, given only where it's needed: manager, carry, ...
//   - A right is one verb on one resource, everywhere or in the program's own namespace.
//   - A row gives rights of one kind, with one reason.
//
// What the hub's credentials may do in a worker is another table: package workeraccess.
package permissions
