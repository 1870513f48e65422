// Package ownwrite says when a process's own write is newer than its cache. controller-runtime 0.24
// and client-go have no client that reads its own writes; until then, each controller remembers what
// an API server answered for as long as its cache is older.
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
