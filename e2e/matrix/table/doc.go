// Package table says which features work with which Kubernetes releases, from the results of tests:
// values in, text out.
//
//	output of go test --Parse--> Outcome --Verdict--> Cell \
//	                                                        Table --Markdown--> docs/reference/compatibility.md
//	a feature that a release can't have ------------> Cell /
//
// Every cell has an answer: yes, no, or why the feature wasn't tried.
package table
