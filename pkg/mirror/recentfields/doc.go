// Package recentfields finds the recent fields of a Job's spec: fields that not every API server
// from Kubernetes 1.33 on keeps. An API server silently drops a field that it doesn't know, or that
// a feature gate switches off there. The types of this build may not know a recent field either. So
// the package reads the field from the object as an API server sent it. The answer of another API
// server to a write shows whether it keeps the field.
//
//	baseline.txt      the fields that are not recent, by type
//	Of                the recent fields of a spec in JSON, without a tree of it
//	Lost              those that are missing from an answer
//	Graft             what a change of the typed object makes of the object as it was sent
//
// A path is that of a field in the object, such as spec.template.spec.containers[*].resizePolicy:
// one path for all elements of a list, so that paths of different Jobs can be compared. What is
// below a recent field belongs to it.
//
// The package is pure.
package recentfields
