// Package recentfields knows which fields of a Job's spec are recent: not every API server from Kubernetes
// 1.33 on keeps them. An API server drops a field that it doesn't know in silence, and one that is
// switched off there by a feature gate, too. The types of this build may not know a recent field
// either. So it is read from the object as an API server sent it, and the answer shows whether
// another API server keeps it.
//
//	baseline.txt      the fields that are not recent, by type
//	Of                the recent fields of a spec
//	Lost              those that are missing from an answer
//	Graft             what a change of the typed object makes of the object as it was sent
//
// A path is that of a field in the object, such as spec.template.spec.containers[*].resizePolicy:
// one path for all elements of a list, so that paths of different Jobs can be compared. What is
// below a recent field belongs to it.
//
// The package is pure.
package recentfields
