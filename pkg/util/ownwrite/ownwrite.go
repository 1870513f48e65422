// Package ownwrite says when a process's own write is newer than its cache. Each controller
// remembers what an API server answered for as long as its cache is older, and goes on with that.
//
// controller-runtime has a client that reads its own writes (EnableReadYourWritesConsistency,
// experimental). Its reads wait for the cache, a List for the writes of all objects of a kind. One
// watch that hangs would hold up every reconcile of its cluster, so it isn't used.
package ownwrite

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Newer reports whether a is a newer state than b of an object of the same API server. States that
// can't be compared aren't newer: the cache is right in the end.
func Newer(a, b metav1.Object) bool {
	return NewerVersion(a.GetResourceVersion(), b.GetResourceVersion())
}

// NewerVersion is Newer for two resourceVersions.
func NewerVersion(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
